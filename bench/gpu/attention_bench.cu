// Checks and times the MLA kernels of src/attention/backends/portable on the GPU that is there.
//
//   nvcc -O3 -std=c++20 -I src -gencode arch=compute_90,code=sm_90 -cudart static
//        -o attention_bench bench/gpu/*.cu bench/gpu/*.cc src/attention/backends/portable/*.cu
//   attention_bench check | small | tiny | ceiling | decode | prefill | dense ...
//
// check: every kernel, format and tile against a double reference; small: a few of them; tiny: for
// compute-sanitizer. Times are medians of 15 replays of a graph whose calls use different queries
// and rows, so that rows are not left in the L2 cache by the call before.
#include <cuda_bf16.h>

#include <cstring>
#include <map>
#include <string>

#include "attention/backends/portable/launch_plan.h"
#include "attention_problem.h"
#include "gpu_timing.cuh"

namespace topknot::bench {
namespace {

using namespace attention::portable;

constexpr double kMaxError[kRowFormats] = {2.5e-3, 5e-3, 5e-3};
constexpr double kMaxLseError = 2e-2;
const char* const kFormatNames[kRowFormats] = {"bf16", "fp8_ds", "q8_0"};

struct Candidate {
  std::string name;
  RowFormat format;
  int tile_heads;
  int slots;  // blocks that run at once
  bool generic;
  std::function<cudaError_t(const MlaKernelArgs&, cudaStream_t)> launch;
};

int sm_count() {
  int sms = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  return sms;
}

std::vector<Candidate> candidates() {
  std::vector<Candidate> list;
  for (int format = 0; format < kRowFormats; ++format) {
    for (const int tile_heads : {16, 32, 64}) {
      const TiledKernel kernel = {static_cast<RowFormat>(format), tile_heads};
      int blocks = 0;
      CHECK_CUDA(prepare_tiled_mla(kernel, &blocks));
      list.push_back({std::string(kFormatNames[format]) + "_" + std::to_string(tile_heads),
                      kernel.format, tile_heads, blocks * sm_count(), false,
                      [=](const MlaKernelArgs& args, cudaStream_t stream) {
                        return launch_tiled_mla(kernel, args, stream);
                      }});
    }
  }
  for (int format = 0; format < kRowFormats; ++format) {
    const auto row_format = static_cast<RowFormat>(format);
    int blocks = 0;
    CHECK_CUDA(prepare_generic_mla(row_format, kGenericMaxWidth, &blocks));
    CHECK_CUDA(prepare_generic_mla(row_format, 576, &blocks));
    list.push_back({std::string(kFormatNames[format]) + "_generic", row_format, 16,
                    blocks * sm_count(), true, [=](const MlaKernelArgs& args, cudaStream_t stream) {
                      return launch_generic_mla(row_format, args, stream);
                    }});
  }
  return list;
}

void launch(const Candidate& candidate, const MlaKernelArgs& args, cudaStream_t stream) {
  CHECK_CUDA(candidate.launch(args, stream));
  if (args.splits > 1 && args.tickets == nullptr) CHECK_CUDA(launch_combine(args, stream));
}

// ---- correctness
// ---------------------------------------------------------------------------------

struct Answer {
  std::vector<uint16_t> out;
  std::vector<float> lse;
  bool operator==(const Answer& other) const {
    return out == other.out && std::memcmp(lse.data(), other.lse.data(), lse.size() * 4) == 0;
  }
};

MlaKernelArgs args_of(const Problem& p, int splits) {
  MlaKernelArgs args = {};
  args.row_bytes = static_cast<int32_t>(p.row_bytes);
  args.lists.stride = p.stride;
  args.lists.count = p.shape.topk;
  args.lists.page_shift = p.shape.dense ? 6 : 0;
  args.tokens = p.shape.tokens;
  args.heads = p.shape.heads;
  args.kv_lora_rank = p.shape.rank;
  args.qk_rope_head_dim = p.shape.rope;
  args.splits = splits;
  args.sm_scale = p.sm_scale;
  return args;
}

Answer run(const Candidate& candidate, const Problem& p, int splits, bool in_place) {
  const DeviceArray<uint16_t> q(p.q);
  const DeviceArray<uint8_t> rows(p.rows);
  const DeviceArray<int32_t> pages(p.pages), list_of(p.list_of), counts(p.counts);
  const auto outs = static_cast<int64_t>(p.out.size()), lses = static_cast<int64_t>(p.lse.size());
  DeviceArray<uint16_t> out(outs);
  DeviceArray<float> lse(lses), partial_out(outs * splits), partial_lse(lses * splits);
  out.poison();
  lse.poison();
  partial_out.poison();
  partial_lse.poison();
  MlaKernelArgs args = args_of(p, splits);
  args.q = q.get();
  args.rows = rows.get();
  args.lists.pages = pages.get();
  if (p.shape.dense) {
    args.lists.list_of = list_of.get();
    args.lists.counts = counts.get();
  }
  args.out = out.get();
  args.lse = lse.get();
  args.partial_out = partial_out.get();
  args.partial_lse = partial_lse.get();
  const DeviceArray<uint32_t> tickets(
      std::vector<uint32_t>(static_cast<size_t>(p.shape.tokens) * 8, 0));
  if (in_place) args.tickets = tickets.get();
  launch(candidate, args, nullptr);
  CHECK_CUDA(cudaDeviceSynchronize());
  for (const uint32_t ticket : tickets.to_host()) {
    if (ticket != 0) std::printf("WRONG %s leaves tickets behind\n", candidate.name.c_str());
  }
  return {out.to_host(), lse.to_host()};
}

// The same tokens in reverse order must give the same bits.
bool order_matters(const Candidate& candidate, const Problem& p, int splits, bool in_place,
                   const Answer& answer) {
  Problem r = p;
  const auto reverse = [&](auto* to, const auto& from) {
    const size_t each = from.size() / static_cast<size_t>(p.shape.tokens);
    for (int t = 0; t < p.shape.tokens; ++t) {
      std::copy_n(from.begin() + static_cast<long>(each) * t, each,
                  to->begin() + static_cast<long>(each) * (p.shape.tokens - 1 - t));
    }
  };
  reverse(&r.q, p.q);
  if (p.shape.dense) {
    reverse(&r.list_of, p.list_of);
    reverse(&r.counts, p.counts);
  } else {
    reverse(&r.pages, p.pages);
  }
  const Answer reversed = run(candidate, r, splits, in_place);
  Answer back = reversed;
  reverse(&back.out, reversed.out);
  reverse(&back.lse, reversed.lse);
  return !(back == answer);
}

struct Tally {
  int problems = 0, wrong = 0;
  double worst_out = 0, worst_lse = 0;
};

void check_one(const Candidate& candidate, const Problem& unsolved, Problem* p, int splits,
               Tally* tally) {
  const bool in_place = splits == 2 && !candidate.generic && tally->problems % 2 == 0;
  const Answer answer = run(candidate, unsolved, splits, in_place);  // before the reference
  if (p->values.empty()) {
    *p = unsolved;
    solve(p);
  }
  const Error error = error_of(*p, answer.out, answer.lse);
  const bool moved = order_matters(candidate, unsolved, splits, in_place, answer);
  ++tally->problems;
  tally->worst_out = std::max(tally->worst_out, error.out);
  tally->worst_lse = std::max(tally->worst_lse, error.lse);
  const double limit = kMaxError[static_cast<int>(candidate.format)];
  if (!moved && error.out <= limit && error.lse <= kMaxLseError) return;
  ++tally->wrong;
  std::printf("WRONG %s heads %d rope %d topk %d splits %d %s: out %.2e lse %.2e%s\n",
              candidate.name.c_str(), p->shape.heads, p->shape.rope, p->shape.topk, splits,
              p->shape.dense ? "dense" : "sparse", error.out, error.lse,
              moved ? ", depends on the order of tokens" : "");
}

void check_problems(const std::vector<Candidate>& list, const std::vector<ProblemShape>& shapes) {
  std::map<std::string, Tally> tallies;
  uint32_t seed = 1;
  for (const ProblemShape& shape : shapes) {
    const Problem unsolved = make_problem(shape, seed++);
    Problem solved;
    for (const Candidate& candidate : list) {
      if (candidate.format != shape.format) continue;
      if (!candidate.generic && shape.rank != kRank) continue;
      for (const int splits : {2, 2, 3, 1}) {
        check_one(candidate, unsolved, &solved, splits, &tallies[candidate.name]);
      }
    }
  }
  for (const auto& [name, tally] : tallies) {
    std::printf("check %-14s %4d problems %3d wrong, worst error out %.2e lse %.2e\n", name.c_str(),
                tally.problems, tally.wrong, tally.worst_out, tally.worst_lse);
  }
}

std::vector<ProblemShape> shapes_of(const std::vector<int>& all_heads,
                                    const std::vector<int>& all_topk) {
  std::vector<ProblemShape> shapes;
  for (int format = 0; format < kRowFormats; ++format) {
    for (const int heads : all_heads) {
      for (const int topk : all_topk) {
        for (const int rope : {64, 0}) {
          for (const bool dense : {false, true}) {
            if (dense && topk % 64 != 0 && topk != 1) continue;
            shapes.push_back({static_cast<RowFormat>(format), heads, 512, rope, topk, 4, dense});
          }
        }
      }
    }
  }
  return shapes;
}

// ---- times
// Shapes of small models, and the widest that the generic kernel takes.
std::vector<ProblemShape> generic_shapes() {
  std::vector<ProblemShape> shapes;
  for (int format = 0; format < kRowFormats; ++format) {
    for (const auto& [rank, rope] : std::vector<std::pair<int, int>>{
             {16, 0}, {32, 16}, {40, 8}, {64, 16}, {128, 64}, {320, 24}, {640, 64}, {848, 64}}) {
      for (const bool dense : {false, true}) {
        shapes.push_back({static_cast<RowFormat>(format), 20, rank, rope, 130, 5, dense});
      }
    }
  }
  return shapes;
}

// ---------------------------------------------------------------------------------------

__device__ uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

// bf16 values of order 1 with random signs; as bytes, valid e4m3 and int8 too. Scales of 8-bit rows
// are whatever falls there, so only times mean something.
__global__ void fill_random(uint32_t* data, int64_t words, uint32_t seed) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
       i += step) {
    const uint32_t r = mix(static_cast<uint32_t>(i) * 2654435761u + seed);
    data[i] = (r & 0x80ff80ffu) | 0x3f003f00u;
  }
}

// Each list: `topk` different rows of a region, in random order. Region and size by list: decode
// draws from a request's own `region` rows of the pool; prefill from the rows before its position.
__global__ void fill_lists(int32_t* lists, int64_t count, int topk, int bits, int regions,
                           uint32_t seed) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const uint32_t mask = (1u << bits) - 1;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const auto list = static_cast<uint32_t>(i / topk);
    const uint32_t key = mix(list * 747796405u + seed);
    uint32_t x = static_cast<uint32_t>(i % topk);
    for (int round = 0; round < 3; ++round) {  // a bijection of `bits` bits
      x = (x * ((mix(key + round) & mask) | 1) + (mix(key ^ (round * 77u)) & mask)) & mask;
      x ^= x >> (bits / 2);
    }
    lists[i] = static_cast<int32_t>((list % regions) << bits) + static_cast<int32_t>(x);
  }
}

struct Device {
  int sms = sm_count();
  double read_bytes_per_s = 0;
  DeviceArray<uint32_t> pool{int64_t{604} << 20};  // 2.4 GB: 2^21 rows of bf16
};

struct Cell {
  int tokens, heads, topk;
};

struct Batch {
  int sets;
  DeviceArray<uint32_t> q;
  DeviceArray<int32_t> lists;
  DeviceArray<uint16_t> out;
  DeviceArray<float> lse, partial_out, partial_lse;
  DeviceArray<uint32_t> tickets{1 << 16};
  Batch(const Cell& cell, int sets_, int bits, int regions)
      : sets(sets_),
        q(int64_t{sets_} * cell.tokens * cell.heads * 288),
        lists(int64_t{sets_} * cell.tokens * cell.topk),
        out(int64_t{cell.tokens} * cell.heads * 512),
        lse(int64_t{cell.tokens} * cell.heads),
        partial_out(int64_t{64} << 20),
        partial_lse(int64_t{1} << 20) {
    fill_random<<<1024, 256>>>(q.get(), q.count(), 3);
    fill_lists<<<1024, 256>>>(lists.get(), lists.count(), cell.topk, bits, regions, 5);
    CHECK_CUDA(cudaMemset(tickets.get(), 0, tickets.bytes()));
    CHECK_CUDA(cudaDeviceSynchronize());
  }
};

MlaKernelArgs timed_args(const Device& device, const Batch& batch, const Cell& cell,
                         RowFormat format, int tile_heads, int splits, int set) {
  MlaKernelArgs args = {};
  args.q = batch.q.get() + int64_t{set} * cell.tokens * cell.heads * 288;
  args.rows = device.pool.get();
  args.row_bytes = static_cast<int32_t>(row_bytes(format, 512, 64));
  args.lists = {batch.lists.get() + int64_t{set} * cell.tokens * cell.topk,
                cell.topk,
                nullptr,
                nullptr,
                cell.topk,
                0};
  args.out = batch.out.get();
  args.lse = batch.lse.get();
  args.partial_out = batch.partial_out.get();
  args.partial_lse = batch.partial_lse.get();
  if (tile_heads > 0 && adds_in_pairs(splits)) args.tickets = batch.tickets.get();
  args.tokens = cell.tokens;
  args.heads = cell.heads;
  args.kv_lora_rank = 512;
  args.qk_rope_head_dim = 64;
  args.splits = splits;
  args.sm_scale = 1.0f / 16;
  return args;
}

void print_time(const Device& device, const char* what, const Candidate& candidate,
                const Cell& cell, int splits, double us) {
  const double rows = static_cast<double>(cell.tokens) * cell.topk;
  const double bytes = rows * static_cast<double>(row_bytes(candidate.format, 512, 64));
  const double flops = rows * cell.heads * 2 * (576 + 512);
  std::printf("%s h%-3d b%-4d k%-5d %-14s s%-3d %8.1f us %6.0f GB/s %3.0f%% %6.1f TF\n", what,
              cell.heads, cell.tokens, cell.topk, candidate.name.c_str(), splits, us,
              bytes / us * 1e-3, 100 * bytes / us * 1e6 / device.read_bytes_per_s,
              flops / us * 1e-6);
  std::fflush(stdout);
}

void time_sparse(const Device& device, const char* what, const Cell& cell, int bits, int regions,
                 const std::vector<Candidate>& list, const std::vector<int>& extra_splits,
                 int replays) {
  const double bytes = static_cast<double>(cell.tokens) * cell.topk * 656;
  const int sets = std::clamp(static_cast<int>(130e6 / bytes) + 1, replays > 5 ? 2 : 1, 48);
  const Batch batch(cell, sets, bits, regions);
  for (const Candidate& candidate : list) {
    std::vector<int> splits = {
        splits_for(cell.tokens, cell.heads, candidate.tile_heads, cell.topk, candidate.slots)};
    for (const int s : extra_splits) {
      if (s != splits[0]) splits.push_back(s);
    }
    for (const int s : splits) {
      const double us = median_us(
          sets,
          [&](int set, cudaStream_t stream) {
            launch(candidate,
                   timed_args(device, batch, cell, candidate.format,
                              candidate.generic ? 0 : candidate.tile_heads, s, set),
                   stream);
          },
          replays);
      print_time(device, what, candidate, cell, s, us);
    }
  }
}

std::vector<Candidate> with_heads(const std::vector<Candidate>& list, int tile_heads) {
  std::vector<Candidate> chosen;
  for (const Candidate& c : list) {
    if (c.tile_heads == tile_heads) chosen.push_back(c);
  }
  return chosen;
}

void time_decode(const Device& device, const std::vector<Candidate>& list) {
  for (const int heads : {8, 32, 64, 128}) {
    const auto chosen = with_heads(list, tile_heads_for(heads));
    for (const int batch : {1, 16, 64, 128}) {
      std::vector<int> more;
      if (batch == 1) more = {32};
      if (batch == 16) more = {8};
      if (batch == 64) more = {2};
      if (batch == 128) more = {1};
      time_sparse(device, "decode", {batch, heads, 2048}, 14, 128, chosen, more, 15);
    }
  }
}

void time_prefill(const Device& device, const std::vector<Candidate>& list) {
  for (const int heads : {8, 64}) {
    time_sparse(device, "prefill", {4096, heads, 2048}, 15, 1,
                with_heads(list, tile_heads_for(heads)), {}, 5);
  }
}

// Dense decode: requests of `context` rows, pages of 64 in random order over the pool.
void time_dense(const Device& device, const std::vector<Candidate>& list) {
  constexpr int kContext = 32768;
  for (const int heads : {8, 64}) {
    for (const int batch : {1, 8, 32}) {
      const Cell pages = {batch, heads, kContext / 64};
      const Batch data(pages, 2, 15, 1);
      const DeviceArray<int32_t> counts(std::vector<int32_t>(static_cast<size_t>(batch), kContext));
      for (const Candidate& candidate : with_heads(list, tile_heads_for(heads))) {
        const int splits =
            splits_for(batch, heads, candidate.tile_heads, kContext, candidate.slots);
        const double us = median_us(2, [&](int set, cudaStream_t stream) {
          MlaKernelArgs args =
              timed_args(device, data, pages, candidate.format, candidate.tile_heads, splits, set);
          args.lists.counts = counts.get();
          args.lists.page_shift = 6;
          launch(candidate, args, stream);
        });
        print_time(device, "dense", candidate, {batch, heads, kContext}, splits, us);
      }
    }
  }
}

int main_of(int count, char** modes) {
  cudaDeviceProp properties;
  CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, sm_%d%d, %d multiprocessors, L2 %d MB\n", properties.name, properties.major,
              properties.minor, properties.multiProcessorCount, properties.l2CacheSize >> 20);
  const std::vector<Candidate> list = candidates();
  for (const Candidate& c : list) {
    std::printf("%s:%d ", c.name.c_str(), c.slots / properties.multiProcessorCount);
  }
  std::printf("blocks per multiprocessor\n");
  std::vector<std::string> wanted(modes, modes + count);
  const auto want = [&](const char* mode) {
    return std::find(wanted.begin(), wanted.end(), mode) != wanted.end();
  };
  if (want("tiny")) {
    for (int format = 0; format < kRowFormats; ++format) {
      const auto row_format = static_cast<RowFormat>(format);
      check_problems(list,
                     {{row_format, 3, 512, 64, 100, 3}, {row_format, 40, 512, 64, 64, 3, true}});
    }
  }
  if (want("small")) {
    check_problems(list, shapes_of({3, 40}, {1, 100}));
    check_problems(list, generic_shapes());
  }
  if (want("check")) {
    check_problems(list, shapes_of({1, 8, 17, 64, 128}, {0, 1, 31, 64, 192, 1000, 2176}));
  }
  if (!want("ceiling") && !want("decode") && !want("prefill") && !want("dense")) return 0;
  Device device;
  fill_random<<<4096, 256>>>(device.pool.get(), device.pool.count(), 1);
  device.read_bytes_per_s =
      read_ceiling(device.pool.get(), static_cast<int64_t>(device.pool.bytes()), device.sms);
  std::printf("ceiling: reads %.0f GB/s\n", device.read_bytes_per_s * 1e-9);
  if (want("decode")) time_decode(device, list);
  if (want("prefill")) time_prefill(device, list);
  if (want("dense")) time_dense(device, list);
  return 0;
}

}  // namespace
}  // namespace topknot::bench

int main(int count, char** modes) { return topknot::bench::main_of(count - 1, modes + 1); }
