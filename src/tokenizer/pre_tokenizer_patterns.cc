#include "tokenizer/pre_tokenizer_patterns.h"

#include <array>

// Literals that share a part are joined by the preprocessor, so that each pattern stays one
// constant.
#define TOPKNOT_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define TOPKNOT_SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"

namespace topknot::tokenizer {
namespace {

// Llama 3 and GLM-4: up to three digits together.
constexpr std::array<std::string_view, 1> kThreeDigits = {
    TOPKNOT_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" TOPKNOT_SPACES,
};

// Qwen 2: the same, each digit alone.
constexpr std::array<std::string_view, 1> kOneDigit = {
    TOPKNOT_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" TOPKNOT_SPACES,
};

constexpr std::array<std::string_view, 1> kGpt2 = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
};

// DeepSeek V3, R1, V3.1, V3.2.
constexpr std::array<std::string_view, 3> kDeepSeekV3 = {
    R"(\p{N}{1,3})",
    R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|)" TOPKNOT_SPACES,
};

// DeepSeek V2 and V2-Lite. The letters of cased scripts are a fixed list in the published pattern,
// not a property: letters that Unicode added later are not in it.
#define TOPKNOT_CASED_LETTERS                                                               \
  R"(\x{41}-\x{5A}\x{61}-\x{7A}\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA})"             \
  R"(\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377})"           \
  R"(\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5})"    \
  R"(\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"      \
  R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B})"                 \
  R"(\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"                 \
  R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"          \
  R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"         \
  R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"                 \
  R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115})"          \
  R"(\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139})"  \
  R"(\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B})"          \
  R"(\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B})" \
  R"(\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"                 \
  R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"                 \
  R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2})"         \
  R"(\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})"

constexpr std::array<std::string_view, 6> kDeepSeekLlm = {
    R"([\r\n])",
    R"(\s?[)" TOPKNOT_CASED_LETTERS R"(]+)",
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
    // Published as `\s+$`, which tries each space of a long run in turn: quadratic. The leftmost
    // match always begins where its run begins, and pass 1 left no line break that `$` could stop
    // at.
    R"((?<!\s)\s++\z)",
    R"([\x{0800}-\x{9FA5}\x{AC00}-\x{D7FF}]+)",
    R"(\p{N}+)",
};

// Kimi K2. Its classes are intersections, {Lu,Lt,Lm,Lo,M} and {Ll,Lm,Lo,M}, each without Han; PCRE2
// gained intersections only in 10.45, so each is written as the complement of all the rest.
#define TOPKNOT_UPPER R"([^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}])"
#define TOPKNOT_LOWER R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}])"
constexpr std::array<std::string_view, 1> kKimiK2 = {
    R"(\p{Han}+|)"
    R"([^\r\n\p{L}\p{N}]?)" TOPKNOT_UPPER "*" TOPKNOT_LOWER "+" TOPKNOT_CONTRACTIONS
    "?|"
    R"([^\r\n\p{L}\p{N}]?)" TOPKNOT_UPPER "+" TOPKNOT_LOWER "*" TOPKNOT_CONTRACTIONS
    "?|"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" TOPKNOT_SPACES,
};

constexpr PreTokenizerSpec kSpecs[] = {
    {"glm4", kThreeDigits},
    {"chatglm-bpe", kThreeDigits},
    {"llama-bpe", kThreeDigits, /*ignore_merges=*/true, /*add_bos_by_default=*/true},
    {"llama3", kThreeDigits, /*ignore_merges=*/true, /*add_bos_by_default=*/true},
    {"llama-v3", kThreeDigits, /*ignore_merges=*/true, /*add_bos_by_default=*/true},
    {"qwen2", kOneDigit},
    {"gpt-2", kGpt2},
    {"deepseek-v3", kDeepSeekV3},
    {"deepseek-llm", kDeepSeekLlm},
    {"kimi-k2", kKimiK2},
};

}  // namespace

std::span<const PreTokenizerSpec> pre_tokenizer_specs() { return kSpecs; }

}  // namespace topknot::tokenizer
