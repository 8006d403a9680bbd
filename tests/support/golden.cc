#include "support/golden.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/mapped_file.h"
#include "base/strings.h"
#include "base/try.h"
#include "support/npz.h"

namespace topknot::test {
namespace {

using Json = nlohmann::ordered_json;  // the order of keys is part of a rendered prompt

constexpr uint64_t kMaxJsonBytes = 16 << 20;
constexpr uint64_t kTop10 = 10;
constexpr uint64_t kGreedyTokens = 64;

Error bad_golden(const std::string& where, std::string why) {
  return {.code = Code::kCorrupt,
          .what = "a golden is not what its README says",
          .where = where,
          .why = std::move(why),
          .fix = "restore it from the repository"};
}

// Reads arrays of one file one after another and keeps the first error, so that a loader can list
// what it needs without a check a line; status() at its end tells.
class Reader {
 public:
  static Result<Reader> open(const std::string& relative) {
    TOPKNOT_TRY(Npz npz, Npz::open(data_path(relative)));
    return Reader(std::move(npz));
  }

  std::vector<int32_t> ints(std::string_view name, std::optional<uint64_t> count = {}) {
    return vector<int32_t>(name, count, [](const NpyArray& a) { return a.as_ints(); });
  }
  std::vector<float> floats(std::string_view name, std::optional<uint64_t> count = {}) {
    return vector<float>(name, count, [](const NpyArray& a) { return a.as_floats(); });
  }
  std::vector<double> doubles(std::string_view name, uint64_t count) {
    return vector<double>(name, count, [](const NpyArray& a) { return a.as_doubles(); });
  }
  std::vector<uint8_t> bytes(std::string_view name, std::optional<uint64_t> count = {}) {
    return vector<uint8_t>(name, count, [](const NpyArray& a) { return a.as_bytes(); });
  }
  Matrix matrix(std::string_view name, uint64_t rows) {
    const auto shape = shape_of(name, 2);
    if (shape.size() != 2) return {};
    if (shape[0] != rows) fail(name, cat("it has ", shape[0], " rows, needed ", rows));
    return {shape[0], shape[1], floats(name)};
  }
  SelectedSets sets(std::string_view name, uint64_t rows) {
    const auto shape = shape_of(name, 2);
    if (shape.size() != 2) return {};
    if (shape[0] != rows || shape[1] * 8 < rows)
      fail(name, "its shape is not [tokens, tokens / 8]");
    return {shape[0], shape[1], bytes(name)};
  }
  // Empty, with an error noted, when the array is not there or has other dimensions.
  std::vector<uint64_t> shape_of(std::string_view name, size_t dims) {
    const auto found = npz_.find(name);
    if (!found) {
      note(found.error());
      return {};
    }
    const auto shape = (*found)->shape();
    if (shape.size() == dims) return {shape.begin(), shape.end()};
    fail(name, cat("its shape is ", (*found)->shape_string(), ", needed ", dims, " dimensions"));
    return {};
  }

  const Npz& npz() const { return npz_; }
  void fail(std::string_view name, std::string why) {
    note(bad_golden(cat(npz_.path(), ", array '", name, "'"), std::move(why)));
  }
  Status status() const { return error_ ? Status(*error_) : Status(); }

 private:
  explicit Reader(Npz npz) : npz_(std::move(npz)) {}
  void note(const Error& error) {
    if (!error_) error_ = error;
  }
  template <class T, class Read>
  std::vector<T> vector(std::string_view name, std::optional<uint64_t> count, Read read) {
    const auto found = npz_.find(name);
    if (!found) {
      note(found.error());
      return {};
    }
    auto values = read(**found);
    if (!values) {
      note(values.error());
      return {};
    }
    if (count && values->size() != *count) {
      fail(name, cat("it has ", values->size(), " elements, needed ", *count));
    }
    return std::move(values).value();
  }

  Npz npz_;
  std::optional<Error> error_;
};

// nlohmann-json throws on wrong types; its exceptions end here.
template <class Build>
auto from_json(const std::string& relative, Build build) -> Result<decltype(build(Json()))> {
  const std::string path = data_path(relative);
  TOPKNOT_TRY(const std::string text, read_text_file(path, kMaxJsonBytes));
  try {
    return build(Json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    return bad_golden(path, error.what());
  }
}

// The names before the last '/' of all arrays that end in `/part`, in the file's (sorted) order.
std::vector<std::string> names_with(const Npz& npz, std::string_view part) {
  std::vector<std::string> names;
  for (const auto& [name, array] : npz.arrays()) {
    const size_t slash = name.rfind('/');
    if (slash != std::string::npos && name.substr(slash + 1) == part) {
      names.push_back(name.substr(0, slash));
    }
  }
  return names;
}

size_t count_layers(const Npz& npz, std::string_view part) {
  size_t layers = 0;
  while (npz.has(cat("layer", layers, "/", part))) ++layers;
  return layers;
}

double perplexity(std::span<const float> nll) {
  double sum = 0;
  for (const float x : nll) sum += double(x);
  return std::exp(sum / double(nll.size()));
}

// The arrays that every kind of prompt golden has.
void read_results(Reader* in, Prompt* prompt) {
  const std::string base = prompt->name + "/";
  const uint64_t positions = prompt->top10_positions.size();
  prompt->last_logits = in->floats(base + "last_logits");
  prompt->top10_ids = in->ints(base + "top10_ids", positions * kTop10);
  prompt->top10_logprobs = in->floats(base + "top10_logprobs", positions * kTop10);
  prompt->greedy = in->ints(base + "greedy", kGreedyTokens);
  prompt->greedy_margin = in->floats(base + "greedy_margin", kGreedyTokens);
}

std::string text_or_empty(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? std::string() : found->get<std::string>();
}

}  // namespace

std::string data_path(std::string_view relative) {
  return cat(TOPKNOT_SOURCE_DIR "/tests/data/", relative);
}
std::string bundled_model_path() { return TOPKNOT_SOURCE_DIR "/models/tiny-glm-dsa.gguf"; }

std::vector<int32_t> SelectedSets::keys(size_t query) const {
  std::vector<int32_t> out;
  for (size_t key = 0; key < row_bytes * 8; ++key) {
    if (contains(query, key)) out.push_back(int32_t(key));
  }
  return out;
}

Result<std::vector<Prompt>> load_prompts() {
  TOPKNOT_TRY(auto prompts, from_json("golden/prompts.json", [](const Json& list) {
                std::vector<Prompt> out;
                for (const auto& entry : list) {
                  Prompt prompt;
                  prompt.name = entry.at("name").get<std::string>();
                  prompt.text = text_or_empty(entry, "text");
                  prompt.continuation = text_or_empty(entry, "continuation");
                  out.push_back(std::move(prompt));
                }
                return out;
              }));
  TOPKNOT_TRY(Reader in, Reader::open("golden/prompts.npz"));
  for (Prompt& prompt : prompts) {
    prompt.ids = in.ints(prompt.name + "/ids");
    prompt.top10_positions = in.ints(prompt.name + "/top10_positions");
    read_results(&in, &prompt);
  }
  TOPKNOT_CHECK_OK(in.status());
  return prompts;
}

Result<std::vector<Prompt>> load_quant_prompts(std::string_view quant) {
  TOPKNOT_TRY(auto prompts, load_prompts());
  TOPKNOT_TRY(Reader in, Reader::open(cat("golden/quant-", quant, ".npz")));
  for (Prompt& prompt : prompts) {
    prompt.continuation.clear();
    read_results(&in, &prompt);
  }
  TOPKNOT_CHECK_OK(in.status());
  return prompts;
}

Result<LayersGolden> load_layers() {
  TOPKNOT_TRY(Reader in, Reader::open("golden/layers.npz"));
  LayersGolden out;
  out.ids = in.ints("ids");
  const uint64_t tokens = out.ids.size();
  out.embed = in.matrix("embed", tokens);
  out.logits = in.matrix("logits", tokens);
  for (size_t l = 0; l < count_layers(in.npz(), "out"); ++l) {
    const auto part = [&](const char* name) { return cat("layer", l, "/", name); };
    LayerStates layer;
    layer.attn_norm = in.matrix(part("attn_norm"), tokens);
    layer.q_latent = in.matrix(part("q_latent"), tokens);
    layer.kv_latent = in.matrix(part("kv_latent"), tokens);
    layer.attn_out = in.matrix(part("attn_out"), tokens);
    layer.ffn_norm = in.matrix(part("ffn_norm"), tokens);
    layer.ffn_out = in.matrix(part("ffn_out"), tokens);
    layer.out = in.matrix(part("out"), tokens);
    if (in.npz().has(part("experts"))) {
      layer.experts = in.ints(part("experts"));
      layer.expert_weights = in.floats(part("expert_weights"), layer.experts.size());
    }
    out.layers.push_back(std::move(layer));
  }
  TOPKNOT_CHECK_OK(in.status());
  return out;
}

Result<IndexerGolden> load_indexer() {
  TOPKNOT_TRY(Reader in, Reader::open("golden/indexer.npz"));
  IndexerGolden out;
  out.ids = in.ints("ids");
  const uint64_t tokens = out.ids.size();
  for (size_t l = 0; l < count_layers(in.npz(), "selected"); ++l) {
    const auto part = [&](const char* name) { return cat("layer", l, "/", name); };
    out.layers.push_back({.selected = in.sets(part("selected"), tokens),
                          .margin = in.floats(part("margin"), tokens),
                          .scores_last = in.floats(part("scores_last"), tokens),
                          .scores_row400 = in.floats(part("scores_row400"), 401)});
  }
  TOPKNOT_CHECK_OK(in.status());
  return out;
}

Result<std::vector<PerplexitySequence>> load_perplexity() {
  TOPKNOT_TRY(Reader in, Reader::open("golden/perplexity.npz"));
  std::vector<PerplexitySequence> out;
  for (const std::string& name : names_with(in.npz(), "ids")) {
    PerplexitySequence sequence;
    sequence.name = name;
    sequence.ids = in.ints(name + "/ids");
    if (sequence.ids.empty()) in.fail(name + "/ids", "it is empty");
    const uint64_t scored = sequence.ids.size() - 1;
    sequence.nll_sparse = in.floats(name + "/nll_sparse", scored);
    sequence.nll_dense = in.floats(name + "/nll_dense", scored);
    sequence.perplexity_sparse = perplexity(sequence.nll_sparse);
    sequence.perplexity_dense = perplexity(sequence.nll_dense);
    out.push_back(std::move(sequence));
  }
  TOPKNOT_CHECK_OK(in.status());
  return out;
}

Result<std::vector<RecallSequence>> load_recall() {
  TOPKNOT_TRY(Reader in, Reader::open("golden/recall.npz"));
  std::vector<RecallSequence> out;
  for (const std::string& name : names_with(in.npz(), "ids")) {
    RecallSequence sequence{.name = name, .ids = in.ints(name + "/ids")};
    const auto bounds = in.ints(name + "/answers");
    const auto correct = in.bytes(name + "/correct_sparse", bounds.size() / 2);
    for (size_t i = 0; i < correct.size() && 2 * i + 1 < bounds.size(); ++i) {
      const int32_t first = bounds[2 * i], end = bounds[2 * i + 1];
      const bool inside = first >= 1 && first < end && size_t(end) <= sequence.ids.size();
      if (!inside) in.fail(name + "/answers", cat("answer ", i, " lies outside the sequence"));
      sequence.answers.push_back({first, end, correct[i] != 0});
    }
    out.push_back(std::move(sequence));
  }
  TOPKNOT_CHECK_OK(in.status());
  return out;
}

Result<TokenizerCases> load_tokenizer_cases() {
  return from_json("golden/tokenizer_cases.json", [](const Json& file) {
    const auto read = [](const Json& list) {
      std::vector<TokenizerCase> out;
      for (const auto& entry : list) {
        out.push_back({.text = entry.at("text").get<std::string>(),
                       .ids = entry.at("ids").get<std::vector<int32_t>>(),
                       .decoded = text_or_empty(entry, "decoded")});
      }
      return out;
    };
    return TokenizerCases{.parsed = read(file.at("cases")),
                          .special_as_text = read(file.at("special_tokens_as_text"))};
  });
}

Result<ChatCases> load_chat_cases() {
  return from_json("golden/chat_template_cases.json", [](const Json& file) {
    ChatCases out{.chat_template = file.at("chat_template").get<std::string>()};
    for (const auto& entry : file.at("cases")) {
      out.cases.push_back({.messages = entry.at("messages").dump(),
                           .tools = entry.at("tools").dump(),
                           .kwargs = entry.at("kwargs").dump(),
                           .rendered = entry.at("rendered").get<std::string>(),
                           .ids = entry.at("ids").get<std::vector<int32_t>>()});
    }
    return out;
  });
}

Result<MicroGolden> load_micro(std::string_view name) {
  TOPKNOT_TRY(Reader in, Reader::open(cat("golden/micro/", name, ".npz")));
  MicroGolden out;
  out.ids = in.ints("ids");
  out.logits = in.matrix("logits", out.ids.size());
  const auto shape = in.shape_of("hidden", 3);
  const std::vector<float> all = in.floats("hidden");
  TOPKNOT_CHECK_OK(in.status());
  if (shape[1] != out.ids.size()) in.fail("hidden", "it has another number of tokens");
  const size_t each = shape[1] * shape[2];
  for (size_t i = 0; i < shape[0]; ++i) {
    const auto begin = all.begin() + ptrdiff_t(i * each);
    out.hidden.push_back({shape[1], shape[2], {begin, begin + ptrdiff_t(each)}});
  }
  TOPKNOT_CHECK_OK(in.status());
  return out;
}

Result<ReferenceGolden> load_reference(std::string_view name) {
  TOPKNOT_TRY(Reader in, Reader::open(cat("golden/reference/", name, ".npz")));
  ReferenceGolden out;
  out.ids = in.ints("ids");
  const uint64_t tokens = out.ids.size();
  const auto top_k = in.ints("top_k", 1);
  const auto full = in.bytes("indexer_full");
  out.logits = in.matrix("logits", tokens);
  for (size_t l = 0; l < full.size(); ++l) {
    const auto part = [&](const char* array) { return cat("layer", l, "/", array); };
    ReferenceLayer layer{.full = full[l] != 0,
                         .selected = in.sets(part("selected"), tokens),
                         .attn_out = in.matrix(part("attn_out"), tokens),
                         .out = in.matrix(part("out"), tokens)};
    if (layer.full) {
      layer.scores = in.matrix(part("scores"), tokens);
      layer.margin = in.doubles(part("margin"), tokens);
      layer.tied = in.bytes(part("tied"), tokens);
    }
    out.layers.push_back(std::move(layer));
  }
  if (in.npz().has("wrong_rows")) out.wrong_rows = in.ints("wrong_rows");
  for (const auto& [array, unused] : in.npz().arrays()) {
    constexpr std::string_view kPrefix = "logits_";
    if (!array.starts_with(kPrefix)) continue;
    out.wrong.emplace(array.substr(kPrefix.size()), in.matrix(array, out.wrong_rows.size()));
  }
  TOPKNOT_CHECK_OK(in.status());
  out.top_k = top_k.front();
  return out;
}

}  // namespace topknot::test
