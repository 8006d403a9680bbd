#include "doctor/benchmark.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/strings.h"
#include "base/thread_pool.h"
#include "base/try.h"
#include "gguf/model_file.h"
#include "plan/plan.h"
#include "synth/synth.h"
#include "topknot/engine.h"

namespace topknot::doctor {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kContext = 512;
constexpr int64_t kTopk = 64;  // fewer than the prompt has, so that the indexer chooses

struct Lengths {
  int64_t prompt, decoded;
};
constexpr Lengths kLengths = {192, 48};
constexpr Lengths kQuickLengths = {96, 16};
constexpr int32_t kWarmTokens = 4;

// A folder of our own, gone with its files.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    std::string name = (parent / "topknot-doctor-XXXXXX").string();
    if (!error && ::mkdtemp(name.data()) != nullptr) return TemporaryFolder(name);
    return Error{.code = Code::kIo,
                 .what = "the benchmark's model cannot be written",
                 .where = parent.string(),
                 .why = error ? "the folder for temporary files does not exist"
                              : std::string(std::strerror(errno)),
                 .fix = "set TMPDIR to a folder that may be written, with 400 MB free"};
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Large enough that a token's weights come from memory on most processors, small enough to be made
// in two seconds.
synth::ModelShape shape_of(bool quick) {
  synth::ModelShape shape = synth::default_shape("glm-dsa");
  shape.name = "topknot doctor";
  shape.index_topk = kTopk;
  if (quick) return shape;
  shape.layers = 5;
  shape.hidden = 1536;
  shape.heads = 8;
  shape.q_lora = 512;
  shape.dense_ffn = 4096;
  shape.expert_ffn = 1024;
  shape.experts_used = 4;
  return shape;
}

synth::Request model_request(const BenchmarkRequest& asked, std::string path) {
  synth::Request request;
  request.shape = shape_of(asked.quick);
  // The types that published files have most of.
  request.types = {{".*", tensor::DType::kQ8_0},
                   {"_exps", tensor::DType::kQ4_K},
                   {"ffn_gate_inp|indexer[.]proj", tensor::DType::kF32}};
  request.path = std::move(path);
  request.threads = std::min(available_cores(), synth::kMaxThreads);
  request.quiet = true;
  request.cancel = asked.cancel;
  return request;
}

// What a decoded token needs at least on this machine, by the plan that the engine executes.
Status add_plan(const std::string& path, const BenchmarkRequest& asked, Benchmark* out) {
  TOPKNOT_TRY(const gguf::ModelFile file, gguf::ModelFile::open(path));
  TOPKNOT_TRY(const model::ModelConfig config, model::read_config(file));
  TOPKNOT_TRY(const model::CheckedTensors tensors, model::check_tensors(file, config));
  plan::PlanRequest request;
  request.device = "cpu";
  request.context = kContext;
  TOPKNOT_TRY(const plan::Plan plan, plan::make_plan(config, tensors, request, asked.machine));
  const plan::TokenPrice& token = plan.price.decode.front();
  out->layers = config.layers;
  out->model_bytes = file.total_bytes();
  out->bytes_per_token = static_cast<uint64_t>(token.bytes);
  out->least_token_seconds = token.seconds;
  return {};
}

GenerateRequest prompt_of(int64_t tokens, int64_t decoded, int64_t vocab) {
  GenerateRequest request;
  for (int64_t i = 0; i < tokens; ++i) {
    request.prompt.push_back(static_cast<int32_t>((i * 37 + tokens) % vocab));
  }
  request.sampling.temperature = 0;
  request.max_tokens = decoded;
  request.ignore_eos = true;
  return request;
}

Status run_model(Engine* engine, const BenchmarkRequest& asked, Benchmark* out) {
  const Lengths lengths = asked.quick ? kQuickLengths : kLengths;
  const int64_t vocab = engine->info().vocab;
  TOPKNOT_CHECK_OK(engine->generate(prompt_of(kWarmTokens, kWarmTokens, vocab)));
  GenerateRequest request = prompt_of(lengths.prompt, lengths.decoded, vocab);
  request.cancel = asked.cancel;
  TOPKNOT_TRY(const Completion done, engine->generate(request));
  if (done.stop == StopReason::kCancelled) {
    return Error{.code = Code::kCancelled, .what = "the benchmark was cancelled"};
  }
  out->sparse = done.sparse_queries > 0;
  out->prompt_tokens = done.prompt_tokens - done.cached_tokens;
  out->prompt_seconds = done.prompt_seconds;
  out->tokens = static_cast<int64_t>(done.tokens.size());
  out->seconds = done.generation_seconds;
  return {};
}

}  // namespace

Result<Benchmark> run_benchmark(const BenchmarkRequest& asked) {
  Benchmark out;
  std::optional<Engine> engine;
  {
    TOPKNOT_TRY(const TemporaryFolder folder, TemporaryFolder::create());
    TOPKNOT_TRY(const synth::Summary made,
                synth::make_model(model_request(asked, folder.file("model"))));
    const std::string& path = made.parts.front().path;
    TOPKNOT_CHECK_OK(add_plan(path, asked, &out));
    TOPKNOT_TRY(engine, Engine::open({.model = path, .context = kContext, .quiet = true}));
  }  // the file stays mapped; its name is no longer needed
  out.kernels = engine->info().kernels;
  out.attention_backend = engine->info().attention_backend;
  out.threads = engine->info().threads;
  TOPKNOT_CHECK_OK(run_model(&*engine, asked, &out));
  return out;
}

}  // namespace topknot::doctor
