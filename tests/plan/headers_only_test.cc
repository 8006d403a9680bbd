// T-1.5: planning the true-size GLM-5 takes little time and reads nothing but headers. Its tensors
// are made unreadable first, so that a plan that touches one ends the test.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <vector>

#include "plan/planned_model.h"

namespace topknot::test {
namespace {

constexpr uint64_t kMaxBytesRead = 64 << 20;
constexpr double kMaxSeconds = 5;

uint64_t page_bytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

// Bytes of a file that are in the page cache.
uint64_t cached_bytes(const std::string& path) {
  const uint64_t bytes = std::filesystem::file_size(path);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_GE(file, 0) << path;
  void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
  close(file);
  EXPECT_NE(memory, MAP_FAILED) << path;
  std::vector<unsigned char> pages((bytes + page_bytes() - 1) / page_bytes());
  EXPECT_EQ(mincore(memory, bytes, pages.data()), 0);
  munmap(memory, bytes);
  uint64_t cached = 0;
  for (const unsigned char page : pages) cached += (page & 1) * page_bytes();
  return cached;
}

void drop_from_cache(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_GE(file, 0) << path;
  fsync(file);
  EXPECT_EQ(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
  close(file);
}

// The pages that hold tensor data and nothing of a header.
void make_tensors_unreadable(const gguf::ModelFile& file) {
  for (const gguf::TensorInfo& each : file.tensors()) {
    const auto begin = reinterpret_cast<uintptr_t>(each.data);
    const uintptr_t first = (begin + page_bytes() - 1) / page_bytes() * page_bytes();
    const uintptr_t end = (begin + each.bytes) / page_bytes() * page_bytes();
    if (end <= first) continue;
    ASSERT_EQ(mprotect(reinterpret_cast<void*>(first), end - first, PROT_NONE), 0);
  }
}

TEST(HeadersOnly, TheTrueSizeModelIsPlannedFromItsHeaders) {
  const Folder folder;
  const std::string first = write_model(headers_of("glm-5-ud-q4_k_xl", folder));
  std::vector<std::string> parts;
  for (const auto& each :
       std::filesystem::directory_iterator(std::filesystem::path(first).parent_path())) {
    parts.push_back(each.path().string());
    drop_from_cache(parts.back());
  }
  ASSERT_EQ(parts.size(), 10u);

  const auto begin = std::chrono::steady_clock::now();
  const auto model = OpenModel::open(first);
  ASSERT_EQ(model->file.tensors().size(), 1809u);
  make_tensors_unreadable(model->file);
  plan::PlanRequest request;
  request.ranks = 8;
  const auto plan = model->plan(request, gpu_machine(120, 101'376, uint64_t{96} << 30));
  ASSERT_TRUE(plan);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;

  uint64_t cached = 0;
  for (const std::string& each : parts) cached += cached_bytes(each);
  EXPECT_LT(spent.count(), kMaxSeconds);
  EXPECT_LT(cached, kMaxBytesRead);
  EXPECT_GT(cached, 0u) << "the measurement sees nothing";
  EXPECT_GT(model->file.total_bytes(), uint64_t{400} << 30);
  EXPECT_TRUE(plan->memory.fits());
}

// models.md section 7.
TEST(HeadersOnly, CacheBytesOfATokenAreThoseOfTheFamily) {
  const std::pair<const char*, std::pair<int64_t, int64_t>> rows[] = {
      {"deepseek-v2-lite-q4_k_m", {31'104, 17'712}}, {"deepseek-v3-q4_k_m", {70'272, 40'016}},
      {"kimi-k2-q4_k_m", {70'272, 40'016}},          {"glm-4.7-flash-q4_k_m", {54'144, 30'832}},
      {"deepseek-v3.2-q4_k_m", {85'888, 48'068}},    {"glm-5-ud-q4_k_xl", {109'824, 61'464}},
      {"glm-5.2-ud-q4_k_xl", {95'232, 53'940}}};
  for (const auto& [name, bytes] : rows) {
    SCOPED_TRACE(name);
    const Folder folder;
    const auto model = OpenModel::open(write_model(headers_of(name, folder)));
    const auto machine = gpu_machine(120, 101'376, uint64_t{2} << 40);
    const auto plan = model->plan({.kv_cache_dtype = "bf16"}, machine);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->memory.bytes_per_token, bytes.first);
    const auto fp8 = model->plan({.kv_cache_dtype = "fp8"}, machine);
    ASSERT_TRUE(fp8);
    EXPECT_EQ(fp8->memory.bytes_per_token, bytes.second);
  }
}

// Three and six ranks hold all of a model between them, and about the same each.
TEST(HeadersOnly, UnevenRanksHoldTheWholeModel) {
  const Folder folder;
  const auto model = OpenModel::open(write_model(headers_of("glm-5-ud-q4_k_xl", folder)));
  const auto machine = gpu_machine(120, 101'376, uint64_t{2} << 40);
  uint64_t split_bytes = 0;
  for (const model::UsedTensor& each : model->tensors.tensors) {
    if (each.split != model::Split::kWhole) split_bytes += each.info->bytes;
  }
  const auto one = model->plan({.ranks = 1}, machine);
  ASSERT_TRUE(one);
  for (const int ranks : {2, 3, 6, 8}) {
    SCOPED_TRACE(ranks);
    plan::PlanRequest request;
    request.ranks = ranks;
    const auto plan = model->plan(request, machine);
    ASSERT_TRUE(plan);
    uint64_t sum = 0;
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const uint64_t weights = plan->memory.devices[static_cast<size_t>(rank)].weights;
      sum += weights;
      least = std::min(least, weights);
      most = std::max(most, weights);
    }
    const uint64_t copies = one->memory.devices[0].weights - split_bytes;
    const uint64_t expected = split_bytes + copies * static_cast<uint64_t>(ranks);
    const uint64_t rounding = model->tensors.tensors.size() * static_cast<uint64_t>(ranks);
    EXPECT_LE(sum, expected);
    EXPECT_GE(sum + rounding, expected) << "only fractions of a byte may be lost";
    EXPECT_LT(static_cast<double>(most), 1.05 * static_cast<double>(least));
  }
}

}  // namespace
}  // namespace topknot::test
