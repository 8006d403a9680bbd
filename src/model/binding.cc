// The table of tensors: exact name, shape, where it applies, where it goes. Names are compared
// whole, never rewritten, so a name that holds `weight` or `qweight` anywhere is just a name.
#include <algorithm>
#include <set>
#include <variant>

#include "base/strings.h"
#include "base/try.h"
#include "model/weights.h"
#include "tensor/dequantize.h"

namespace topknot::model {
namespace {

using gguf::TensorInfo;

constexpr size_t kMaxProblems = 20;  // lines of one Error

// Where a tensor of a layer must be.
enum class When : uint8_t {
  kAlways,
  kQueryLora,
  kQueryDirect,
  kSplitKv,  // attn_k_b and attn_v_b
  kFusedKv,  // attn_kv_b
  kOwnIndexer,
  kDense,
  kExperts,
  kSplitGateUp,
  kFusedGateUp,  // ffn_gate_up_exps
  kRouterBias,
  kSharedExperts,
};

// ne[] of a tensor, ne[0] first; 0 ends it.
using Shape = std::array<int64_t, 3>;

struct Layout {
  const ModelConfig& c;
  int64_t q_width() const { return c.heads * c.qk_head_dim(); }
  int64_t shared_width() const { return c.expert_ffn * c.shared_experts; }
  int64_t index_width() const { return c.indexer ? c.indexer->heads * c.indexer->head_dim : 0; }
  int64_t index_dim() const { return c.indexer ? c.indexer->head_dim : 0; }
  int64_t index_heads() const { return c.indexer ? c.indexer->heads : 0; }
};

using Target = std::variant<Weight LayerWeights::*, std::vector<float> LayerWeights::*>;

struct LayerRow {
  const char* suffix;  // after "blk.N."
  Shape (*shape)(const Layout&);
  When when;
  Target target;
  Use use;
  Split split;
  const char* alias = nullptr;  // another spelling seen in files
  const char* second_alias = nullptr;
};

#define SHAPE(...)               \
  [](const Layout& l) -> Shape { \
    (void)l;                     \
    return {__VA_ARGS__};        \
  }
using L = LayerWeights;
const LayerRow kLayerTable[] = {
    {"attn_norm.weight", SHAPE(l.c.hidden), When::kAlways, &L::attn_norm, Use::kVector,
     Split::kWhole},
    {"attn_q_a.weight", SHAPE(l.c.hidden, l.c.q_lora_rank), When::kQueryLora, &L::q_a, Use::kLinear,
     Split::kWhole},
    {"attn_q_a_norm.weight", SHAPE(l.c.q_lora_rank), When::kQueryLora, &L::q_a_norm, Use::kVector,
     Split::kWhole},
    {"attn_q_b.weight", SHAPE(l.c.q_lora_rank, l.q_width()), When::kQueryLora, &L::q_b,
     Use::kLinear, Split::kHeadRows},
    {"attn_q.weight", SHAPE(l.c.hidden, l.q_width()), When::kQueryDirect, &L::q, Use::kLinear,
     Split::kHeadRows},
    {"attn_kv_a_mqa.weight", SHAPE(l.c.hidden, l.c.latent_width()), When::kAlways, &L::kv_a,
     Use::kLinear, Split::kWhole},
    {"attn_kv_a_norm.weight", SHAPE(l.c.kv_lora_rank), When::kAlways, &L::kv_a_norm, Use::kVector,
     Split::kWhole},
    {"attn_k_b.weight", SHAPE(l.c.qk_nope_head_dim, l.c.kv_lora_rank, l.c.heads), When::kSplitKv,
     &L::k_b, Use::kHeads, Split::kHeads},
    {"attn_v_b.weight", SHAPE(l.c.kv_lora_rank, l.c.v_head_dim, l.c.heads), When::kSplitKv, &L::v_b,
     Use::kHeads, Split::kHeads},
    {"attn_kv_b.weight", SHAPE(l.c.kv_lora_rank, l.c.heads*(l.c.qk_nope_head_dim + l.c.v_head_dim)),
     When::kFusedKv, &L::k_b_rows, Use::kFusedHeads, Split::kHeadRows},
    {"attn_output.weight", SHAPE(l.c.heads* l.c.v_head_dim, l.c.hidden), When::kAlways,
     &L::attn_out, Use::kLinear, Split::kHeadColumns},
    {"indexer.attn_q_b.weight", SHAPE(l.c.q_lora_rank, l.index_width()), When::kOwnIndexer,
     &L::index_q_b, Use::kScoring, Split::kWhole},
    {"indexer.attn_k.weight", SHAPE(l.c.hidden, l.index_dim()), When::kOwnIndexer, &L::index_k,
     Use::kLinear, Split::kWhole},
    {"indexer.k_norm.weight", SHAPE(l.index_dim()), When::kOwnIndexer, &L::index_k_norm,
     Use::kVector, Split::kWhole},
    {"indexer.k_norm.bias", SHAPE(l.index_dim()), When::kOwnIndexer, &L::index_k_norm_bias,
     Use::kVector, Split::kWhole},
    {"indexer.proj.weight", SHAPE(l.c.hidden, l.index_heads()), When::kOwnIndexer,
     &L::index_weights, Use::kScoring, Split::kWhole},
    {"ffn_norm.weight", SHAPE(l.c.hidden), When::kAlways, &L::ffn_norm, Use::kVector,
     Split::kWhole},
    {"ffn_gate.weight", SHAPE(l.c.hidden, l.c.dense_ffn), When::kDense, &L::ffn_gate, Use::kLinear,
     Split::kFfnRows},
    {"ffn_up.weight", SHAPE(l.c.hidden, l.c.dense_ffn), When::kDense, &L::ffn_up, Use::kLinear,
     Split::kFfnRows},
    {"ffn_down.weight", SHAPE(l.c.dense_ffn, l.c.hidden), When::kDense, &L::ffn_down, Use::kLinear,
     Split::kFfnColumns},
    {"ffn_gate_inp.weight", SHAPE(l.c.hidden, l.c.router.experts), When::kExperts, &L::router,
     Use::kRouter, Split::kWhole},
    {"exp_probs_b.bias", SHAPE(l.c.router.experts), When::kRouterBias, &L::router_bias,
     Use::kVector, Split::kWhole, "exp_probs_b", "exp_probs_b.weight"},
    {"ffn_gate_exps.weight", SHAPE(l.c.hidden, l.c.expert_ffn, l.c.router.experts),
     When::kSplitGateUp, &L::gate_exps, Use::kExperts, Split::kFfnRows},
    {"ffn_up_exps.weight", SHAPE(l.c.hidden, l.c.expert_ffn, l.c.router.experts),
     When::kSplitGateUp, &L::up_exps, Use::kExperts, Split::kFfnRows},
    {"ffn_gate_up_exps.weight", SHAPE(l.c.hidden, 2 * l.c.expert_ffn, l.c.router.experts),
     When::kFusedGateUp, &L::gate_exps, Use::kExperts, Split::kFfnRows},
    {"ffn_down_exps.weight", SHAPE(l.c.expert_ffn, l.c.hidden, l.c.router.experts), When::kExperts,
     &L::down_exps, Use::kExperts, Split::kFfnColumns},
    {"ffn_gate_shexp.weight", SHAPE(l.c.hidden, l.shared_width()), When::kSharedExperts,
     &L::gate_shared, Use::kLinear, Split::kFfnRows},
    {"ffn_up_shexp.weight", SHAPE(l.c.hidden, l.shared_width()), When::kSharedExperts,
     &L::up_shared, Use::kLinear, Split::kFfnRows},
    {"ffn_down_shexp.weight", SHAPE(l.shared_width(), l.c.hidden), When::kSharedExperts,
     &L::down_shared, Use::kLinear, Split::kFfnColumns},
};
#undef SHAPE

// A tensor that was found right, and the row of the table it belongs to; no row: an embedding.
struct Found {
  const TensorInfo* tensor;
  const LayerRow* row;
  int64_t layer;
};

// Compares names, shapes and types; reads nothing of a tensor but its description.
class Checker {
 public:
  Checker(const gguf::ModelFile& file, const ModelConfig& config) : file_(file), config_(config) {}

  Result<CheckedTensors> check() {
    check_embeddings();
    for (int64_t layer = 0; layer < config_.layers; ++layer) check_layer(layer);
    if (!problems_.empty()) return error();
    TOPKNOT_CHECK_OK(refuse_scales());
    note_unused();
    return std::move(checked_);
  }

  const std::vector<Found>& found() const { return found_; }

 private:
  void problem(std::string text) {
    if (problems_.size() < kMaxProblems) problems_.push_back(std::move(text));
    ++problem_count_;
  }

  Error error() const {
    std::string why;
    for (const std::string& each : problems_) why += cat(why.empty() ? "" : "\n", each);
    if (problem_count_ > problems_.size())
      why += cat("\nand ", problem_count_ - problems_.size(), " more");
    return Error{.code = Code::kCorrupt,
                 .what = "the model's tensors are not those its metadata asks for",
                 .where = file_.path(),
                 .why = std::move(why),
                 .fix = "download the file again, or convert the model again"};
  }

  // Some converters of NVFP4 write a second scale of a weight (of each expert) into a tensor of its
  // own, `blk.0.ffn_up.scale` for `blk.0.ffn_up.weight`. Without it the product would be wrong.
  Status refuse_scales() const {
    constexpr std::string_view kWeight = ".weight";
    std::string why;
    size_t count = 0;
    for (const UsedTensor& each : checked_.tensors) {
      std::string_view stem = each.info->name;
      if (!stem.ends_with(kWeight)) continue;
      stem.remove_suffix(kWeight.size());
      const TensorInfo* scale = file_.find_tensor(cat(stem, ".scale"));
      if (scale == nullptr || ++count > kMaxProblems) continue;
      why += cat(why.empty() ? "'" : "\n'", printable(scale->name), "' scales '",
                 printable(each.info->name), "' (in ", file_.path_of(*scale), ")");
    }
    if (count == 0) return {};
    if (count > kMaxProblems) why += cat("\nand ", count - kMaxProblems, " more");
    return Error{
        .code = Code::kUnsupported,
        .what = "the model holds scales beside its weights, which this version does not use",
        .where = file_.path(),
        .why = std::move(why),
        .fix = "use a file whose blocks hold every scale, for instance Q4_K or MXFP4"};
  }

  bool applies(When when, int64_t layer) const {
    const bool moe = config_.is_moe_layer(layer);
    const bool fused_gate_up = has(layer, "ffn_gate_up_exps.weight");
    const bool fused_kv = !has(layer, "attn_k_b.weight") && has(layer, "attn_kv_b.weight");
    switch (when) {
      case When::kAlways: return true;
      case When::kQueryLora: return config_.q_lora_rank > 0;
      case When::kQueryDirect: return config_.q_lora_rank == 0;
      case When::kSplitKv: return !fused_kv;
      case When::kFusedKv: return fused_kv;
      case When::kOwnIndexer: return config_.has_own_indexer(layer);
      case When::kDense: return !moe;
      case When::kExperts: return moe;
      case When::kSplitGateUp: return moe && !fused_gate_up;
      case When::kFusedGateUp: return moe && fused_gate_up;
      case When::kRouterBias: return moe && (config_.router_bias || has(layer, "exp_probs_b.bias"));
      case When::kSharedExperts: return moe && config_.shared_experts > 0;
    }
    return false;
  }

  static std::string name_of(int64_t layer, const char* suffix) {
    return cat("blk.", layer, ".", suffix);
  }
  bool has(int64_t layer, const char* suffix) const {
    return file_.find_tensor(name_of(layer, suffix)) != nullptr;
  }

  // The tensor if it is there with this shape; else a problem.
  const TensorInfo* find(const std::string& name, const Shape& shape) {
    const TensorInfo* tensor = file_.find_tensor(name);
    if (tensor == nullptr) {
      problem(cat("'", name, "' is missing; needed: ", shape_text(shape)));
      return nullptr;
    }
    used_.insert(tensor);
    bool same = true;
    for (size_t i = 0; i < 4; ++i) {
      const int64_t wanted = i < 3 && shape[i] > 0 ? shape[i] : 1;
      same = same && tensor->ne[i] == static_cast<uint64_t>(wanted);
    }
    if (!same) {
      problem(cat("'", name, "' has shape ", gguf::shape_string(*tensor),
                  "; needed: ", shape_text(shape)));
      return nullptr;
    }
    return tensor;
  }

  static std::string shape_text(const Shape& shape) {
    std::string out = "{";
    for (const int64_t n : shape) {
      if (n > 0) out += cat(out.size() > 1 ? ", " : "", n);
    }
    return out + "}";
  }

  void add(const TensorInfo& tensor, Use use, Split split) {
    checked_.tensors.push_back({&tensor, -1, use, split});
    found_.push_back({&tensor, nullptr, -1});
  }

  void check_embeddings() {
    const TensorInfo* embed = file_.find_tensor("token_embd.weight");
    // vocab_size may be absent, and embedding rows may exceed it (padding).
    const int64_t vocab = embed != nullptr ? static_cast<int64_t>(embed->ne[1]) : config_.vocab;
    checked_.vocab = vocab;
    if (embed != nullptr && vocab < config_.vocab) {
      problem(cat("'token_embd.weight' has ", vocab, " rows; vocab_size is ", config_.vocab));
    }
    if (const auto* tensor = find("token_embd.weight", {config_.hidden, vocab})) {
      add(*tensor, Use::kEmbedding, Split::kVocabRows);
    }
    if (const auto* tensor = find("output_norm.weight", {config_.hidden})) {
      add(*tensor, Use::kVector, Split::kWhole);
    }
    if (file_.find_tensor("output.weight") == nullptr) {
      checked_.notes.push_back("output.weight is absent: token_embd.weight is used");
      checked_.tied_output = true;
    } else if (const auto* tensor = find("output.weight", {config_.hidden, vocab})) {
      add(*tensor, Use::kLinear, Split::kVocabRows);
    }
  }

  void check_layer(int64_t layer) {
    const Layout layout{config_};
    for (const LayerRow& row : kLayerTable) {
      if (!applies(row.when, layer)) continue;
      const char* suffix = row.suffix;
      for (const char* other : {row.alias, row.second_alias}) {
        if (other != nullptr && !has(layer, row.suffix) && has(layer, other)) suffix = other;
      }
      const TensorInfo* tensor = find(name_of(layer, suffix), row.shape(layout));
      if (tensor == nullptr) continue;
      checked_.tensors.push_back({tensor, layer, row.use, row.split});
      found_.push_back({tensor, &row, layer});
    }
  }

  void note_unused() {
    size_t nextn = 0;
    size_t shared_indexer = 0;
    std::vector<std::string> others;
    for (const TensorInfo& tensor : file_.tensors()) {
      if (used_.contains(&tensor)) continue;
      const std::optional<int64_t> layer = layer_of(tensor.name);
      if (layer && *layer >= config_.layers && *layer < config_.layers + config_.nextn_layers) {
        ++nextn;
      } else if (layer && *layer < config_.layers && !config_.has_own_indexer(*layer) &&
                 tensor.name.find(".indexer.") != std::string_view::npos) {
        ++shared_indexer;
      } else {
        others.push_back(printable(tensor.name));
      }
    }
    if (nextn > 0) {
      checked_.notes.push_back(cat("the MTP block (", nextn, " tensors behind layer ",
                                   config_.layers - 1, ") is left out"));
    }
    if (shared_indexer > 0) {
      checked_.notes.push_back(
          cat(shared_indexer, " indexer tensors of layers that run no indexer are not used"));
    }
    if (!others.empty()) {
      checked_.notes.push_back(
          cat(others.size(), " tensors are not used, the first is '", others.front(), "'"));
    }
  }

  static std::optional<int64_t> layer_of(std::string_view name) {
    if (!name.starts_with("blk.")) return std::nullopt;
    int64_t layer = 0;
    size_t i = 4;
    for (; i < name.size() && name[i] >= '0' && name[i] <= '9' && layer < 1'000'000; ++i) {
      layer = layer * 10 + (name[i] - '0');
    }
    if (i == 4 || i >= name.size() || name[i] != '.') return std::nullopt;
    return layer;
  }

  const gguf::ModelFile& file_;
  const ModelConfig& config_;
  CheckedTensors checked_;
  std::vector<Found> found_;
  std::vector<std::string> problems_;
  size_t problem_count_ = 0;
  std::set<const TensorInfo*> used_;
};

// Puts tensors where the forward pass looks for them; widens norms and biases.
class Binder {
 public:
  explicit Binder(const ModelConfig& config) : config_(config) {
    weights_.layers.resize(static_cast<size_t>(config.layers));
  }

  Weights bind(const std::vector<Found>& found) {
    for (const Found& each : found) place(each);
    if (weights_.output.empty()) weights_.output = weights_.token_embd;
    for (LayerWeights& w : weights_.layers) {
      if (w.k_b.empty() && !w.k_b_rows.empty()) split_kv_b(&w);
      if (w.up_exps.empty() && !w.gate_exps.empty()) split_gate_up(&w);
    }
    return std::move(weights_);
  }

 private:
  static Weight as_weight(const TensorInfo& tensor) {
    Weight w;
    w.type = tensor.type;
    w.data = tensor.data;
    w.in = static_cast<int64_t>(tensor.ne[0]);
    w.out = static_cast<int64_t>(tensor.ne[1]);
    w.count = static_cast<int64_t>(tensor.ne[2]);
    w.row_bytes = static_cast<int64_t>(tensor::row_bytes(tensor.type, tensor.ne[0]));
    w.matrix_stride = w.row_bytes * w.out;
    return w;
  }

  static std::vector<float> as_vector(const TensorInfo& tensor) {
    std::vector<float> out(tensor.elements());
    tensor::dequantize_row(tensor.type, tensor.data, tensor.elements(), out.data());
    return out;
  }

  void place(const Found& found) {
    const TensorInfo& tensor = *found.tensor;
    if (found.row == nullptr) {
      if (tensor.name == "token_embd.weight") weights_.token_embd = as_weight(tensor);
      if (tensor.name == "output_norm.weight") weights_.output_norm = as_vector(tensor);
      if (tensor.name == "output.weight") weights_.output = as_weight(tensor);
      return;
    }
    LayerWeights& w = weights_.layers[static_cast<size_t>(found.layer)];
    if (const auto* weight = std::get_if<Weight LayerWeights::*>(&found.row->target)) {
      w.** weight = as_weight(tensor);
    } else {
      w.*std::get<std::vector<float> LayerWeights::*>(found.row->target) = as_vector(tensor);
    }
  }

  // attn_kv_b [H][N + V, R]: for each head first N rows of W_UK, then V rows of W_UV.
  void split_kv_b(LayerWeights* w) const {
    Weight head = w->k_b_rows;
    head.count = config_.heads;
    head.matrix_stride = (config_.qk_nope_head_dim + config_.v_head_dim) * head.row_bytes;
    w->k_b_rows = head;
    w->k_b_rows.out = config_.qk_nope_head_dim;
    w->v_b = head;
    w->v_b.out = config_.v_head_dim;
    w->v_b.data += config_.qk_nope_head_dim * head.row_bytes;
  }

  // ffn_gate_up_exps [E][2F, D]: gate rows, then up rows.
  void split_gate_up(LayerWeights* w) const {
    w->gate_exps.out = config_.expert_ffn;
    w->up_exps = w->gate_exps;
    w->up_exps.data += config_.expert_ffn * w->gate_exps.row_bytes;
  }

  const ModelConfig& config_;
  Weights weights_;
};

}  // namespace

Result<CheckedTensors> check_tensors(const gguf::ModelFile& file, const ModelConfig& config) {
  return Checker(file, config).check();
}

Status check_types(const gguf::ModelFile& file, const CheckedTensors& tensors) {
  std::string why;
  size_t count = 0;
  for (const UsedTensor& each : tensors.tensors) {
    if (tensor::dtype_info(each.info->type).decoded) continue;
    if (++count > kMaxProblems) continue;
    why += cat(why.empty() ? "'" : "\n'", printable(each.info->name), "' has type ",
               tensor::dtype_name(each.info->type), " (in ", file.path_of(*each.info), ")");
  }
  if (count == 0) return {};
  if (count > kMaxProblems) why += cat("\nand ", count - kMaxProblems, " more");
  std::string decoded;
  for (const tensor::DTypeInfo& info : tensor::dtypes()) {
    if (info.decoded) decoded += cat(decoded.empty() ? "" : " ", info.name);
  }
  return Error{.code = Code::kUnsupported,
               .what = "the model holds tensor types that cannot be decoded",
               .where = file.path(),
               .why = std::move(why),
               .fix = cat("use a file of other types (decoded: ", decoded, ")")};
}

Result<BoundWeights> bind_weights(const gguf::ModelFile& file, const ModelConfig& config) {
  Checker checker(file, config);
  TOPKNOT_TRY(CheckedTensors checked, checker.check());
  TOPKNOT_CHECK_OK(check_types(file, checked));
  return BoundWeights{Binder(config).bind(checker.found()), checked.vocab,
                      std::move(checked.notes)};
}

}  // namespace topknot::model
