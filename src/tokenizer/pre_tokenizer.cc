#include "tokenizer/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <string>

#include "base/assert.h"
#include "base/strings.h"
#include "base/try.h"

// Earlier releases know neither \p{White_Space} nor \p{sc:Han}.
static_assert(PCRE2_MAJOR > 10 || (PCRE2_MAJOR == 10 && PCRE2_MINOR >= 40), "PCRE2 10.40 or newer");

namespace topknot::tokenizer {
namespace {

// Backtracking steps allowed for one match: every known pattern needs a few per byte of its piece.
constexpr uint32_t kMatchStepsPerByte = 64;
constexpr uint32_t kMatchStepsBase = 1'000'000;

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
using CodePtr = std::unique_ptr<pcre2_code, FreeCode>;
using MatchDataPtr = std::unique_ptr<pcre2_match_data, FreeMatchData>;
using MatchContextPtr = std::unique_ptr<pcre2_match_context, FreeMatchContext>;

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

void replace_all(std::string* text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size()) {
    text->replace(at, from.size(), to);
  }
}

// PCRE2's own `\s` adds U+180E to White_Space, and its `\p{Han}` is the script extensions.
std::string in_pcre2_notation(std::string_view published) {
  std::string pattern(published);
  replace_all(&pattern, R"(\s)", R"(\p{White_Space})");
  replace_all(&pattern, R"(\S)", R"(\P{White_Space})");
  replace_all(&pattern, R"(\p{Han})", R"(\p{sc:Han})");
  return pattern;
}

CodePtr compile(std::string_view published) {
  const std::string pattern = in_pcre2_notation(published);
  int error = 0;
  size_t offset = 0;
  CodePtr code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
  // A failure leaves the interpreter in use: some systems forbid writable code pages.
  if (code) pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

Error out_of_memory() {
  return Error{.code = Code::kResource,
               .what = "no memory to split text into pieces",
               .why = "PCRE2 could not allocate its match state",
               .fix = "free memory or send less text at once"};
}

Error match_failed(std::string_view pre, int code, size_t offset) {
  return Error{.code = Code::kResource,
               .what = cat("pre-tokenizer '", pre, "' gave up on the text"),
               .where = cat("byte ", offset, " of a fragment"),
               .why = cat("PCRE2: ", pcre2_message(code)),
               .fix = "shorten the run of similar characters there"};
}

}  // namespace

struct PreTokenizer::Pass {
  CodePtr code;
};

// What one call needs for one pass.
struct PreTokenizer::Scratch {
  MatchDataPtr data;
  MatchContextPtr context;
};

PreTokenizer::PreTokenizer(const PreTokenizerSpec* spec, std::vector<Pass> passes)
    : spec_(spec), passes_(std::move(passes)) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::create(std::string_view pre) {
  std::vector<std::string> names;
  for (const PreTokenizerSpec& spec : pre_tokenizer_specs()) {
    names.emplace_back(spec.name);
    if (spec.name != pre) continue;
    std::vector<Pass> passes;
    for (const std::string_view published : spec.passes) {
      CodePtr code = compile(published);
      if (!code) return out_of_memory();  // the patterns are constants that the tests compile
      passes.push_back(Pass{std::move(code)});
    }
    return PreTokenizer(&spec, std::move(passes));
  }
  const std::vector<std::string> near = nearest(pre, names, 1);
  return Error{.code = Code::kUnsupported,
               .what = cat("unknown pre-tokenizer '", printable(pre), "'"),
               .where = "tokenizer.ggml.pre",
               .why = cat("known: ", fmt::format("{}", fmt::join(names, ", "))),
               .fix = near.empty()
                          ? "override tokenizer.ggml.pre with the name of the model's family"
                          : cat("if the model's family is '", near.front(),
                                "', override tokenizer.ggml.pre with it")};
}

Status PreTokenizer::for_each_piece(std::string_view text,
                                    const std::function<void(std::string_view)>& piece) const {
  std::vector<Scratch> scratch;
  for (const Pass& pass : passes_) {
    Scratch& one = scratch.emplace_back();
    one.data.reset(pcre2_match_data_create_from_pattern(pass.code.get(), nullptr));
    one.context.reset(pcre2_match_context_create(nullptr));
    if (!one.data || !one.context) return out_of_memory();
    const uint64_t steps = kMatchStepsBase + uint64_t{kMatchStepsPerByte} * text.size();
    pcre2_set_match_limit(one.context.get(),
                          static_cast<uint32_t>(std::min<uint64_t>(steps, UINT32_MAX)));
  }
  return run_pass(0, text, scratch, piece);
}

Status PreTokenizer::run_pass(size_t index, std::string_view text, std::vector<Scratch>& scratch,
                              const std::function<void(std::string_view)>& piece) const {
  if (text.empty()) return {};
  if (index == passes_.size()) {
    piece(text);
    return {};
  }
  const Scratch& own = scratch[index];
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t done = 0;  // everything before it has been handed on
  while (done < text.size()) {
    // The text was checked once by the caller; checking again at each match would be quadratic.
    const auto match = [&](uint32_t options) {
      return pcre2_match(passes_[index].code.get(), subject, text.size(), done,
                         PCRE2_NO_UTF_CHECK | options, own.data.get(), own.context.get());
    };
    int count = match(0);
    // The interpreter keeps its backtracking on the heap.
    if (count == PCRE2_ERROR_JIT_STACKLIMIT) count = match(PCRE2_NO_JIT);
    if (count == PCRE2_ERROR_NOMATCH) break;
    if (count < 0) return match_failed(spec_->name, count, done);
    const size_t* span = pcre2_get_ovector_pointer(own.data.get());
    const size_t begin = span[0];
    const size_t end = span[1];
    TOPKNOT_ASSERT(begin >= done && end > begin);  // no pattern matches the empty string
    TOPKNOT_CHECK_OK(run_pass(index + 1, text.substr(done, begin - done), scratch, piece));
    TOPKNOT_CHECK_OK(run_pass(index + 1, text.substr(begin, end - begin), scratch, piece));
    done = end;
  }
  return run_pass(index + 1, text.substr(done), scratch, piece);
}

Result<std::vector<std::string_view>> pre_tokenize(std::string_view pre, std::string_view text) {
  TOPKNOT_TRY(const PreTokenizer splitter, PreTokenizer::create(pre));
  if (const size_t offset = find_invalid_utf8(text); offset != std::string_view::npos) {
    return Error{.code = Code::kCorrupt,
                 .what = "text is not UTF-8",
                 .where = cat("byte ", offset),
                 .why = "a pre-tokenizer works on code points",
                 .fix = "send UTF-8"};
  }
  std::vector<std::string_view> pieces;
  TOPKNOT_CHECK_OK(
      splitter.for_each_piece(text, [&](std::string_view piece) { pieces.push_back(piece); }));
  return pieces;
}

}  // namespace topknot::tokenizer
