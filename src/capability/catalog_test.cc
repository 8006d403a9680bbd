#include "capability/catalog.h"

#include <gmock/gmock.h>

#include <regex>

#include "base/strings.h"
#include "capability/device_facts.h"

namespace topknot::capability {
namespace {

using testing::HasSubstr;

constexpr const char* kSmall = R"({
  "name": "small", "engine": "An engine", "as_of": "2026-09", "about": "For tests.",
  "operations": [{
    "operation": "attention",
    "orders": [
      {"when": [{"fact": "heads", "at_most": 16}], "order": ["wide", "narrow"], "source": "repo#1"},
      {"when": [{"fact": "device", "exactly": "cuda"}], "order": ["narrow"], "source": "repo#2"}],
    "entries": [
      {"name": "narrow", "source": "repo#3", "rules": [
        {"fact": "kv_format", "one_of": ["f16", "fp8_ds"], "because": "two load paths",
         "remedy": "--kv f16", "source": "file@1"},
        {"fact": "page", "multiple_of": 16, "because": "tiles"}]},
      {"name": "wide", "source": "repo#4", "rules": [
        {"fact": "sm", "between": [90, 109], "because": "wgmma"}]}]}]})";

Facts asked(int64_t heads, KvFormat format) {
  return Facts()
      .set(Fact::kDevice, DeviceKind::kCuda)
      .set(Fact::kSm, 120)
      .set(Fact::kHeads, heads)
      .set(Fact::kKvFormat, format)
      .set(Fact::kPageTokens, 64);
}

TEST(Catalog, TheFirstOrderThatHoldsIsTried) {
  const Catalog catalog = parse_catalog(kSmall, "x.json").value();
  const auto few = evaluate(catalog.operations[0], asked(8, KvFormat::kF16));
  ASSERT_EQ(few.candidates.size(), 2u);
  EXPECT_EQ(few.candidates[0].name, "wide");
  EXPECT_EQ(few.candidates[few.chosen.value()].name, "narrow");
  const auto many = evaluate(catalog.operations[0], asked(64, KvFormat::kQ8_0));
  EXPECT_FALSE(many.chosen);
  EXPECT_EQ(many.candidates[0].name, "narrow");
  EXPECT_EQ(many.candidates[0].refusals[0].needed, "one of f16, fp8_ds");
  EXPECT_EQ(many.candidates[0].refusals[0].because, "two load paths [file@1]");
  EXPECT_EQ(many.candidates[0].refusals[0].remedy, "--kv f16");
  ASSERT_EQ(many.candidates[1].refusals.size(), 2u) << "not in this order, and wrong sm";
  EXPECT_EQ(many.candidates[1].refusals[0].what, "order");
  EXPECT_EQ(many.candidates[1].refusals[0].needed, "one of narrow");
  EXPECT_EQ(many.candidates[1].refusals[1].because, "wgmma [repo#4]");
}

TEST(Catalog, ANameIsTriedOutsideTheOrderToo) {
  const Catalog catalog = parse_catalog(kSmall, "x.json").value();
  Facts facts = asked(64, KvFormat::kQ8_0);
  facts.set(Fact::kSm, 90);
  EXPECT_FALSE(evaluate(catalog.operations[0], facts).chosen);
  const auto named = evaluate(catalog.operations[0], facts, "wide");
  ASSERT_TRUE(named.chosen);
  EXPECT_EQ(named.candidates[*named.chosen].name, "wide");
  EXPECT_FALSE(evaluate(catalog.operations[0], facts, "narrow").chosen);
}

TEST(Catalog, WhereNoOrderHoldsNothingIsTried) {
  const Catalog catalog = parse_catalog(kSmall, "x.json").value();
  Facts facts = asked(64, KvFormat::kF16);
  facts.set(Fact::kDevice, DeviceKind::kCpu);
  const auto choice = evaluate(catalog.operations[0], facts);
  EXPECT_FALSE(choice.chosen);
  EXPECT_THAT(explain(choice), HasSubstr("no order of attention holds for what is asked"));
}

TEST(Catalog, EveryProblemIsReportedAtOnce) {
  const auto catalog = parse_catalog(R"({
    "name": "x", "engine": "y", "as_of": "2026-09",
    "operations": [{"operation": "attention",
      "orders": [{"order": ["a", "typo"], "source": "s"}],
      "entries": [
        {"name": "a", "source": "s", "rules": [
          {"fact": "sm", "because": "b"},
          {"fact": "sm", "at_least": 80, "at_most": 90, "because": "b"},
          {"fact": "smm", "exactly": 1, "because": "b"},
          {"fact": "kv_format", "exactly": "bf17", "because": "b"},
          {"fact": "kv_format", "at_least": "bf16", "because": "b"},
          {"fact": "heads", "between": [9, 3], "because": "b"},
          {"fact": "heads", "multiple_of": 0, "because": "b"},
          {"fact": "heads", "one_of": [], "because": "b"},
          {"fact": "heads", "exactly": -1, "because": "b"},
          {"fact": "heads", "exactly": 8}]},
        {"name": "a", "rules": []}]}]})",
                                     "x.json");
  ASSERT_FALSE(catalog);
  const std::string rules = "operations[0].entries[0].rules";
  for (const std::string& line : std::vector<std::string>{
           "about: needs a value, found nothing",
           rules + "[0].fact: needs one of exactly, at_least",
           rules + "[1].fact: needs one of exactly, at_least",
           rules + "[2].fact: needs a fact: did you mean 'sm'?, found smm",
           rules + "[3].exactly: needs one of f32, bf16, fp8_ds, q8_0, f16, fp8_e4m3",
           rules + "[4].at_least: needs exactly or one_of: the values have names",
           rules + "[5].between: needs the lower end first",
           rules + "[6].multiple_of: needs at least 1, found 0",
           rules + "[7].one_of: needs a list of 1 to 32 values, found a list of 0",
           rules + "[8].exactly: needs a whole number of 0 to",
           rules + "[9].because: needs a value", "operations[0].entries[1].source: needs a value",
           "operations[0].entries: needs each name once, found a",
           "operations[0].orders: needs names of entries"}) {
    EXPECT_THAT(catalog.error().why, HasSubstr(line));
  }
}

TEST(Catalog, OfNothingOrTwiceTheSameIsNone) {
  const auto with = [](const std::string& operations) {
    return parse_catalog(cat(R"({"name": "x", "engine": "y", "as_of": "2026-09", "about": "z",
                                 "operations": [)",
                             operations, "]}"),
                         "x.json");
  };
  const std::string one =
      R"({"operation": "attention", "entries": [{"name": "a", "source": "s", "rules": []}]})";
  ASSERT_TRUE(with(one));
  EXPECT_THAT(with("").error().why, HasSubstr("at least one operation"));
  EXPECT_THAT(with(cat(one, ",", one)).error().why, HasSubstr("each operation once"));
  EXPECT_THAT(with(R"({"operation": "attention", "entries": []})").error().why,
              HasSubstr("at least one entry"));
}

TEST(Catalog, IsFoundByName) {
  EXPECT_THAT(catalog_names(), testing::ElementsAre("ik_llama.cpp-2026-08", "llama.cpp-2026-08",
                                                    "sglang-2026", "vllm-2026-02", "vllm-2026-09"));
  for (const std::string& name : catalog_names()) {
    const auto catalog = read_catalog(name);
    ASSERT_TRUE(catalog) << catalog.error().to_string();
    EXPECT_EQ(catalog->name, name);
    EXPECT_TRUE(std::regex_match(catalog->as_of, std::regex("2026-[01][0-9]")));
    for (const CatalogOperation& operation : catalog->operations) {
      for (const CatalogEntry& entry : operation.entries) {
        EXPECT_FALSE(entry.rules.empty()) << name << " " << entry.name;
        for (const CatalogRule& rule : entry.rules) {
          EXPECT_TRUE(std::regex_search(rule.source, std::regex("#[0-9]+|@[0-9a-f]{7}|\\.(py|cu)")))
              << entry.name << ": " << rule.source;
        }
      }
    }
  }
}

// The problem that this project began with: GLM-5 on eight SM120 cards.
Facts glm5_on_eight_cards(ActivationType dtype, KvFormat format) {
  return device_facts(device::read_machine("rtx-pro-6000").value().devices.at(0))
      .set(Fact::kSelection, Selection::kSparse)
      .set(Fact::kHeads, 64 / 8)
      .set(Fact::kKvLoraRank, 512)
      .set(Fact::kQkRopeHeadDim, 64)
      .set(Fact::kQkNopeHeadDim, 192)
      .set(Fact::kHeadSize, 576)
      .set(Fact::kTopk, 2048)
      .set(Fact::kPageTokens, 64)
      .set(Fact::kKvFormat, format)
      .set(Fact::kDtype, dtype)
      .set(Fact::kArchitecture, Architecture::kGlmDsa)
      .set(Fact::kWeights, WeightFormat::kGguf)
      .set(Fact::kTensorRanks, 8)
      .set(Fact::kContextRanks, 1)
      .set(Fact::kSequences, 1)
      .set(Fact::kIndexHeads, 32)
      .set(Fact::kIndexHeadDim, 128);
}

std::vector<std::string> lines_of(const Candidate& candidate) {
  std::vector<std::string> out;
  for (const Refusal& r : candidate.refusals) {
    out.push_back(r.what + ": " + r.needed + " / " + r.found);
  }
  return out;
}

const Candidate& candidate_of(const Choice& choice, std::string_view name) {
  for (const Candidate& candidate : choice.candidates) {
    if (candidate.name == name) return candidate;
  }
  ADD_FAILURE() << "no candidate " << name;
  return choice.candidates.at(0);
}

class OriginalProblem : public testing::TestWithParam<ActivationType> {};

TEST_P(OriginalProblem, InFebruaryNoBackendIsValidAndEachSaysWhy) {
  const KvFormat rows = GetParam() == ActivationType::kF16 ? KvFormat::kF16 : KvFormat::kBf16;
  const Catalog catalog = read_catalog("vllm-2026-02").value();
  const auto choices = evaluate_catalog(catalog, glm5_on_eight_cards(GetParam(), rows));
  const Choice& attention = *find_choice(choices, "attention");
  EXPECT_FALSE(attention.chosen);
  EXPECT_FALSE(all_chosen(choices));
  std::vector<std::string> tried;
  for (const Candidate& candidate : attention.candidates) tried.push_back(candidate.name);
  EXPECT_EQ(tried,
            (std::vector<std::string>{"FLASH_ATTN_MLA", "FLASHMLA", "FLASHINFER_MLA", "TRITON_MLA",
                                      "FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE", "CUTLASS_MLA"}));
  EXPECT_THAT(lines_of(attention.candidates[0]),
              testing::ElementsAre("selection: exactly dense / sparse", "sm: from 90 to 99 / 120"));
  EXPECT_THAT(
      lines_of(attention.candidates[1]),
      testing::ElementsAre("selection: exactly dense / sparse", "sm: from 90 to 109 / 120"));
  EXPECT_THAT(lines_of(attention.candidates[2]),
              testing::ElementsAre("selection: exactly dense / sparse", "sm: from 100 to 109 / 120",
                                   "qk_nope_head_dim: exactly 128 / 192"));
  EXPECT_THAT(lines_of(attention.candidates[3]),
              testing::ElementsAre("selection: exactly dense / sparse"));
  if (GetParam() == ActivationType::kF16) {
    EXPECT_THAT(
        lines_of(attention.candidates[4]),
        testing::ElementsAre("dtype: exactly bf16 / f16", "kv_format: one of bf16, fp8_ds / f16",
                             "sm: from 90 to 109 / 120"));
  } else {
    EXPECT_THAT(lines_of(attention.candidates[4]),
                testing::ElementsAre("sm: from 90 to 109 / 120"));
  }
  EXPECT_EQ(attention.candidates[5].refusals[0].what, "order");
  EXPECT_THAT(
      lines_of(attention.candidates[5]),
      testing::IsSupersetOf({"sm: from 100 to 109 / 120", "qk_nope_head_dim: exactly 128 / 192"}));
  EXPECT_THAT(
      lines_of(attention.candidates[6]),
      testing::IsSupersetOf({"selection: exactly dense / sparse", "page: exactly 128 / 64"}));
  EXPECT_THAT(explain(*find_choice(choices, "indexer_scores")),
              HasSubstr("sm: needs one of 90, 100, 103, found 120"));
  EXPECT_THAT(explain(*find_choice(choices, "weights")),
              HasSubstr("architecture: needs exactly deepseek2, found glm-dsa"));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, OriginalProblem,
                         testing::Values(ActivationType::kF16, ActivationType::kBf16));

TEST(OriginalProblemLater, InSeptemberOnlyTheOneForSm120AndOnlyWithFp8Rows) {
  const Catalog catalog = read_catalog("vllm-2026-09").value();
  const CatalogOperation& attention = catalog.operations.at(0);
  for (const KvFormat format : {KvFormat::kFp8Ds, KvFormat::kFp8E4m3}) {
    const auto with = evaluate(attention, glm5_on_eight_cards(ActivationType::kBf16, format));
    ASSERT_TRUE(with.chosen) << explain(with);
    EXPECT_EQ(with.candidates[*with.chosen].name, "FLASHINFER_MLA_SPARSE_SM120");
    for (const Candidate& candidate : with.candidates) {
      if (candidate.name == "FLASHINFER_MLA_SPARSE_SM120") continue;
      EXPECT_FALSE(candidate.refusals.empty()) << candidate.name;
    }
  }
  const auto without =
      evaluate(attention, glm5_on_eight_cards(ActivationType::kBf16, KvFormat::kBf16));
  EXPECT_FALSE(without.chosen);
  EXPECT_THAT(lines_of(candidate_of(without, "FLASHINFER_MLA_SPARSE_SM120")),
              testing::ElementsAre("kv_format: one of fp8_ds, fp8_e4m3 / bf16"));
  const auto half =
      evaluate(attention, glm5_on_eight_cards(ActivationType::kF16, KvFormat::kFp8Ds));
  EXPECT_FALSE(half.chosen);
  EXPECT_THAT(lines_of(candidate_of(half, "FLASHINFER_MLA_SPARSE_SM120")),
              testing::ElementsAre("dtype: exactly bf16 / f16"));
}

TEST(Catalog, TheOrderOnSm100DependsOnRowsAndHeads) {
  const CatalogOperation attention = read_catalog("vllm-2026-09").value().operations.at(0);
  const auto chosen = [&](int64_t heads, KvFormat format) {
    Facts facts = glm5_on_eight_cards(ActivationType::kBf16, format);
    facts.set(Fact::kSm, 100).set(Fact::kHeads, heads);
    const auto choice = evaluate(attention, facts);
    return choice.chosen ? choice.candidates[*choice.chosen].name : "";
  };
  EXPECT_EQ(chosen(8, KvFormat::kBf16), "FLASHINFER_MLA_SPARSE");
  EXPECT_EQ(chosen(64, KvFormat::kBf16), "FLASHMLA_SPARSE");
  EXPECT_EQ(chosen(64, KvFormat::kFp8E4m3), "FLASHINFER_MLA_SPARSE");
  EXPECT_EQ(chosen(64, KvFormat::kFp8Ds), "FLASHMLA_SPARSE");
}

TEST(Catalog, LlamaCppRunsTheFileOnOneCardButNotSplitOverEight) {
  const Catalog catalog = read_catalog("llama.cpp-2026-08").value();
  Facts facts = glm5_on_eight_cards(ActivationType::kBf16, KvFormat::kBf16);
  const auto eight = evaluate_catalog(catalog, facts);
  EXPECT_THAT(explain(*find_choice(eight, "attention")),
              HasSubstr("tensor_ranks: needs exactly 1, found 8"));
  EXPECT_FALSE(all_chosen(eight));
  facts.set(Fact::kTensorRanks, 1).set(Fact::kHeads, 64);
  EXPECT_TRUE(all_chosen(evaluate_catalog(catalog, facts)));
}

}  // namespace
}  // namespace topknot::capability
