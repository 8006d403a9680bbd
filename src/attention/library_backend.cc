#include "attention/library_backend.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <exception>
#include <fstream>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/try.h"

namespace topknot::attention {
namespace {

using namespace capability;

// The numbers of the header are ours.
static_assert(TOPKNOT_DEVICE_CPU == static_cast<int64_t>(DeviceKind::kCpu));
static_assert(TOPKNOT_DEVICE_CUDA == static_cast<int64_t>(DeviceKind::kCuda));
static_assert(TOPKNOT_SELECTION_SPARSE == static_cast<int64_t>(Selection::kSparse));
static_assert(TOPKNOT_SELECTION_DENSE == static_cast<int64_t>(Selection::kDense));
static_assert(TOPKNOT_KV_F32 == static_cast<int64_t>(KvFormat::kF32));
static_assert(TOPKNOT_KV_BF16 == static_cast<int64_t>(KvFormat::kBf16));
static_assert(TOPKNOT_KV_FP8_DS == static_cast<int64_t>(KvFormat::kFp8Ds));
static_assert(TOPKNOT_KV_Q8_0 == static_cast<int64_t>(KvFormat::kQ8_0));
static_assert(TOPKNOT_KV_F16 == static_cast<int64_t>(KvFormat::kF16));
static_assert(TOPKNOT_KV_FP8_E4M3 == static_cast<int64_t>(KvFormat::kFp8E4m3));

constexpr const char* kCompileAgain =
    "compile the library with this program's topknot/backend_abi.h";

Error unusable(Code code, const std::string& path, std::string why, std::string fix) {
  return Error{.code = code,
               .what = "the backend library cannot be used",
               .where = path,
               .why = std::move(why),
               .fix = std::move(fix)};
}

// A program's text, in our hands.
std::string text_of(const char* text, size_t most = kMaxLibraryTextBytes) {
  if (text == nullptr) return {};
  return printable(std::string_view(text, strnlen(text, most + 1)), most);
}

// What dlopen would only say in the words of its own.
Status check_file(const std::string& path) {
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0) {
    return unusable(Code::kNotFound, path, cat("it cannot be opened: ", std::strerror(errno)),
                    "check the path: a name without a slash is a file of this folder");
  }
  std::array<char, 4> magic = {};
  if (S_ISREG(facts.st_mode)) {
    std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  }
  if (std::string_view(magic.data(), magic.size()) !=
      "\x7f"
      "ELF") {
    return unusable(Code::kCorrupt, path, "it is not a shared library (needed: an ELF file)",
                    "give the .so that the compiler made with -shared");
  }
  return {};
}

// Only the version and the size may be read of a table that is not known to be ours.
Status check_version(const TopknotBackendAbi* table, const std::string& path) {
  if (table == nullptr) {
    return unusable(Code::kUnsupported, path,
                    cat(TOPKNOT_BACKEND_ABI_SYMBOL, "(", TOPKNOT_BACKEND_ABI_VERSION,
                        ") returned no table: the library does not have this version"),
                    kCompileAgain);
  }
  if (table->abi_version != TOPKNOT_BACKEND_ABI_VERSION) {
    return unusable(Code::kUnsupported, path,
                    cat("its table is of another ABI version: needs ", TOPKNOT_BACKEND_ABI_VERSION,
                        ", found ", table->abi_version),
                    kCompileAgain);
  }
  if (table->table_bytes < sizeof(TopknotBackendAbi)) {
    return unusable(Code::kCorrupt, path,
                    cat("its table is too short: needs ", sizeof(TopknotBackendAbi),
                        " bytes, found ", table->table_bytes),
                    "set table_bytes to sizeof(TopknotBackendAbi)");
  }
  return {};
}

Status check_table(const TopknotBackendAbi* table, const std::string& path) {
  TOPKNOT_CHECK_OK(check_version(table, path));
  const std::pair<const char*, bool> entries[] = {
      {"name", table->name != nullptr},
      {"description", table->description != nullptr},
      {"refusals", table->refusals != nullptr},
      {"workspace_bytes", table->workspace_bytes != nullptr},
      {"create", table->create != nullptr},
      {"plan", table->plan != nullptr},
      {"run", table->run != nullptr},
      {"destroy", table->destroy != nullptr},
  };
  std::string missing;
  for (const auto& [name, there] : entries) {
    if (!there) missing += cat(missing.empty() ? "" : ", ", name);
  }
  if (!missing.empty()) {
    return unusable(Code::kCorrupt, path, cat("entries of its table are null: ", missing),
                    "set every entry; a backend without limits has a refusals() that says nothing");
  }
  const std::string name = text_of(table->name, kMaxLibraryNameBytes);
  if (!is_backend_name(name)) {
    return unusable(Code::kCorrupt, path,
                    cat("its name '", name, "' is none: needed are 1 to ", kMaxLibraryNameBytes,
                        " of a-z 0-9 _ - ."),
                    "give the backend such a name in its table");
  }
  if (table->memory > TOPKNOT_CUDA_BF16) {
    return unusable(Code::kCorrupt, path,
                    cat("its table says memory ", table->memory, ": needed is ", TOPKNOT_HOST_F32,
                        " or ", TOPKNOT_CUDA_BF16),
                    "set it to TOPKNOT_HOST_F32 or TOPKNOT_CUDA_BF16");
  }
  return {};
}

// What an exception that leaves the library says; empty when none did.
template <class Call>
std::string exception_of(Call&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return cat("it threw an exception: ", text_of(error.what()));
  } catch (...) {
    return "it threw an exception";
  }
  return {};
}

Code code_of(int32_t code) {
  return code == TOPKNOT_NO_MEMORY ? Code::kResource : Code::kUnsupported;
}

// Who is called, for messages.
struct Callee {
  std::shared_ptr<const BackendLibrary> library;
  std::string name;
};

// One call of the library. `function` is its name in the table.
template <class Call>
Status call(const Callee& callee, const char* function, Call&& body) {
  TopknotError error = {};
  error.struct_bytes = sizeof(error);
  int32_t code = TOPKNOT_FAILED;
  const std::string thrown = exception_of([&] { code = body(&error); });
  if (code == TOPKNOT_OK && thrown.empty()) return {};
  const auto said = [](const char* text, size_t size) {
    return printable(std::string_view(text, strnlen(text, size)), size);
  };
  const std::string what = said(error.what, sizeof(error.what));
  std::string why = thrown.empty() ? said(error.why, sizeof(error.why)) : thrown;
  std::string fix = said(error.fix, sizeof(error.fix));
  return Error{.code = code_of(code),
               .what = cat("backend '", callee.name, "' failed in ", function, "()",
                           what.empty() ? "" : ": ", what),
               .where = callee.library->path(),
               .why = why.empty() ? cat("it returned ", code) : std::move(why),
               .fix = fix.empty() ? "leave the library out, or ask its maker" : std::move(fix)};
}

TopknotAttentionFacts facts_of(const Facts& asked) {
  const auto value = [&](Fact fact) { return asked[fact].value_or(TOPKNOT_UNKNOWN); };
  TopknotAttentionFacts facts = {};
  facts.struct_bytes = sizeof(facts);
  facts.device = value(Fact::kDevice);
  facts.sm = value(Fact::kSm);
  facts.smem_per_block = value(Fact::kSmemPerBlock);
  facts.selection = value(Fact::kSelection);
  facts.heads = value(Fact::kHeads);
  facts.kv_lora_rank = value(Fact::kKvLoraRank);
  facts.qk_rope_head_dim = value(Fact::kQkRopeHeadDim);
  facts.qk_nope_head_dim = value(Fact::kQkNopeHeadDim);
  facts.head_size = value(Fact::kHeadSize);
  facts.topk = value(Fact::kTopk);
  facts.kv_format = value(Fact::kKvFormat);
  facts.page = value(Fact::kPageTokens);
  facts.tensor_ranks = asked[Fact::kTensorRanks].value_or(1);
  return facts;
}

struct Collected {
  const Facts& asked;
  std::vector<Refusal> refusals;
};

std::string found_value(const Facts& asked, const std::string& what) {
  const auto fact = fact_from_name(what);
  if (!fact || !asked[*fact]) return "unknown";
  return fact_value(*fact, *asked[*fact]);
}

// Called by the library: no exception of ours may pass through its frames.
void collect(void* context, const TopknotRefusal* said) noexcept {
  auto& out = *static_cast<Collected*>(context);
  if (said == nullptr || out.refusals.size() == kMaxLibraryRefusals) return;
  Refusal refusal{.what = text_of(said->what),
                  .needed = text_of(said->needed),
                  .found = text_of(said->found),
                  .because = text_of(said->because),
                  .remedy = text_of(said->remedy)};
  if (refusal.what.empty()) refusal.what = "limit";
  if (refusal.needed.empty()) refusal.needed = "another value";
  if (refusal.found.empty()) refusal.found = found_value(out.asked, refusal.what);
  if (refusal.because.empty()) refusal.because = "the library gives no reason";
  out.refusals.push_back(std::move(refusal));
}

std::vector<Refusal> limits_of(const BackendLibrary& library, const Facts& asked) {
  Collected out{asked, {}};
  const TopknotAttentionFacts facts = facts_of(asked);
  const std::string thrown =
      exception_of([&] { library.table().refusals(&facts, &collect, &out); });
  if (!thrown.empty()) {
    out.refusals.push_back({.what = "limits",
                            .needed = "an answer of refusals()",
                            .found = "none",
                            .because = thrown});
  }
  return std::move(out.refusals);
}

// What a library need not say itself.
constexpr Rule kOnHost[] = {
    {Fact::kDevice, exactly(DeviceKind::kCpu), "the library computes on the host", "--device cpu"}};
constexpr Rule kOnGpu[] = {{Fact::kDevice, exactly(DeviceKind::kCuda),
                            "the library computes on a GPU", "--device cuda:0"}};

std::vector<Refusal> unproven(const Facts& asked, const Proven& proven) {
  const auto selection = asked[Fact::kSelection];
  if (!selection) return {};
  const bool sparse = *selection == TOPKNOT_SELECTION_SPARSE;
  if (sparse ? proven.sparse : proven.dense) return {};
  return {
      {.what = "probe",
       .needed = cat("a ", sparse ? "sparse" : "dense", " tile that it computes right"),
       .found = "none",
       .because = "the library's own limits, or a GPU that is missing, kept it from being tried",
       .remedy = ""}};
}

TopknotShape shape_of(const MlaShape& shape) {
  return {sizeof(TopknotShape), shape.heads, shape.kv_lora_rank, shape.qk_rope_head_dim};
}

void parallel_for(void* pool, int64_t items, TopknotBody body, void* context) {
  static_cast<ThreadPool*>(pool)->parallel_for(
      items, [&](int64_t item, int thread) { body(context, item, thread); });
}

TopknotRunArgs run_args(const MlaArgs& args) {
  TopknotRunArgs out = {};
  out.struct_bytes = sizeof(out);
  out.tokens = args.tokens;
  out.selection = static_cast<int32_t>(args.selection);
  out.kv_format = static_cast<int32_t>(args.kv.format);
  out.q = args.q;
  out.kv_rows = args.kv.data;
  out.row_bytes = args.kv.row_bytes;
  out.width = args.kv.width;
  out.tail = args.kv.tail;
  out.slots = args.kv.slots;
  if (args.selection == Selection::kSparse) {
    out.topk_slots = args.sparse.topk_slots;
    out.topk = args.sparse.topk;
  } else {
    out.block_table = args.dense.block_table;
    out.max_pages = args.dense.max_pages;
    out.requests = args.dense.requests;
    out.visible = args.dense.visible;
  }
  out.page_tokens = kvcache::kPageTokens;
  out.sm_scale = args.sm_scale;
  out.out = args.out;
  out.lse = args.lse;
  out.stream = args.stream;
  return out;
}

class LibraryAttention final : public Attention {
 public:
  static Result<std::unique_ptr<Attention>> create(const Callee& callee, const MlaShape& shape,
                                                   const Resources& resources) {
    std::unique_ptr<LibraryAttention> made(new LibraryAttention(callee, resources));
    const TopknotShape asked = shape_of(shape);
    void* backend = nullptr;
    TOPKNOT_CHECK_OK(call(callee, "create", [&](TopknotError* error) {
      return made->table().create(&asked, &made->resources_, &backend, error);
    }));
    made->backend_ = backend;
    made->created_ = true;
    return std::unique_ptr<Attention>(std::move(made));
  }

  ~LibraryAttention() override {
    if (created_) exception_of([&] { table().destroy(backend_); });
  }
  LibraryAttention(const LibraryAttention&) = delete;
  LibraryAttention& operator=(const LibraryAttention&) = delete;

  Status plan(const MlaBatch& batch) override {
    TopknotBatch asked = {};
    asked.struct_bytes = sizeof(asked);
    asked.selection = static_cast<int32_t>(batch.selection);
    asked.tokens = batch.tokens;
    asked.topk = batch.topk;
    asked.max_visible = batch.max_visible;
    return call(callee_, "plan",
                [&](TopknotError* error) { return table().plan(backend_, &asked, error); });
  }

  Status run(const MlaArgs& args) override {
    const TopknotRunArgs asked = run_args(args);
    return call(callee_, "run",
                [&](TopknotError* error) { return table().run(backend_, &asked, error); });
  }

 private:
  LibraryAttention(Callee callee, const Resources& resources) : callee_(std::move(callee)) {
    resources_.struct_bytes = sizeof(resources_);
    resources_.threads = resources.pool != nullptr ? resources.pool->threads() : 0;
    resources_.cuda_device = resources.cuda_device;
    resources_.pool = resources.pool;
    resources_.parallel_for = &parallel_for;
  }
  const TopknotBackendAbi& table() const { return callee_.library->table(); }

  Callee callee_;
  TopknotResources resources_ = {};
  void* backend_ = nullptr;  // what create() made; null may be one
  bool created_ = false;
};

int64_t workspace_of(const BackendLibrary& library, const MlaShape& shape, int threads) {
  const TopknotShape asked = shape_of(shape);
  int64_t bytes = 0;
  exception_of([&] { bytes = library.table().workspace_bytes(&asked, threads); });
  return std::clamp<int64_t>(bytes, 0, kMaxLibraryWorkspaceBytes);
}

}  // namespace

bool is_backend_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxLibraryNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                  c == '.';
         });
}

Result<std::shared_ptr<const BackendLibrary>> BackendLibrary::open(const std::string& path) {
  TOPKNOT_CHECK_OK(check_file(path));
  const std::string file = path.find('/') == std::string::npos ? cat("./", path) : path;
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    return unusable(Code::kUnsupported, path, cat("it cannot be loaded: ", text_of(::dlerror())),
                    "install what it needs, or link it again");
  }
  using Entry = const TopknotBackendAbi* (*)(uint32_t);
  const auto entry = reinterpret_cast<Entry>(::dlsym(handle, TOPKNOT_BACKEND_ABI_SYMBOL));
  if (entry == nullptr) {
    return unusable(Code::kCorrupt, path, "it exports no symbol " TOPKNOT_BACKEND_ABI_SYMBOL,
                    "define topknot_backend_abi() of topknot/backend_abi.h, visible and in C");
  }
  const TopknotBackendAbi* table = nullptr;
  const std::string thrown = exception_of([&] { table = entry(TOPKNOT_BACKEND_ABI_VERSION); });
  if (!thrown.empty()) {
    return unusable(Code::kUnsupported, path, cat(TOPKNOT_BACKEND_ABI_SYMBOL, "(): ", thrown),
                    "ask its maker");
  }
  TOPKNOT_CHECK_OK(check_table(table, path));
  return std::shared_ptr<const BackendLibrary>(new BackendLibrary(path, table));
}

std::string BackendLibrary::name() const { return text_of(table_->name, kMaxLibraryNameBytes); }

std::string BackendLibrary::description() const { return text_of(table_->description); }

Backend backend_of(const std::shared_ptr<const BackendLibrary>& library, const std::string& name,
                   const Proven& proven) {
  Backend backend;
  backend.name = name.empty() ? library->name() : name;
  backend.description = library->description();
  backend.rules =
      library->on_host() ? std::span<const Rule>(kOnHost) : std::span<const Rule>(kOnGpu);
  backend.create = [callee = Callee{library, backend.name}](const MlaShape& shape,
                                                            const Resources& resources) {
    return LibraryAttention::create(callee, shape, resources);
  };
  backend.workspace_bytes = [library](const MlaShape& shape, int threads) {
    return workspace_of(*library, shape, threads);
  };
  backend.activations = library->on_host() ? ActivationType::kF32 : ActivationType::kBf16;
  backend.limits = [library, proven](const Facts& asked) {
    std::vector<Refusal> out = limits_of(*library, asked);
    for (Refusal& each : unproven(asked, proven)) out.push_back(std::move(each));
    return out;
  };
  return backend;
}

}  // namespace topknot::attention
