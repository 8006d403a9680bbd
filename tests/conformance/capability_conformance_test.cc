// What a device, a model and a request are answered: by our own list of attention backends, and by
// the catalogues of other engines. Each row of "accepted, then dies" (reports of engines that took
// a model, loaded it for minutes and failed at the first call) is posed as facts; the answer is a
// choice, or refusals that carry the values.
//
// Not posed: sglang#29562, the width of fused shared experts, which is no fact of attention.
#include <gmock/gmock.h>

#include "attention/registry.h"
#include "capability/catalog.h"
#include "capability/device_facts.h"
#include "capability/standing.h"
#include "device/machine.h"

namespace topknot {
namespace {

using namespace capability;

Facts device_of(const std::string& machine) {
  auto read = device::read_machine(machine);
  EXPECT_TRUE(read) << machine;
  return device_facts(read->devices.at(0));
}

// GLM-5 and its later versions but Flash, on one of `ranks`.
Facts glm5(const std::string& machine, int64_t ranks, KvFormat rows) {
  return device_of(machine)
      .set(Fact::kSelection, Selection::kSparse)
      .set(Fact::kHeads, 64 / ranks)
      .set(Fact::kKvLoraRank, 512)
      .set(Fact::kQkRopeHeadDim, 64)
      .set(Fact::kQkNopeHeadDim, 192)
      .set(Fact::kHeadSize, 576)
      .set(Fact::kTopk, 2048)
      .set(Fact::kPageTokens, 64)
      .set(Fact::kKvFormat, rows)
      .set(Fact::kDtype, ActivationType::kBf16)
      .set(Fact::kArchitecture, Architecture::kGlmDsa)
      .set(Fact::kWeights, WeightFormat::kSafetensors)
      .set(Fact::kTensorRanks, ranks)
      .set(Fact::kContextRanks, 1)
      .set(Fact::kSequences, 1)
      .set(Fact::kIndexHeads, 32)
      .set(Fact::kIndexHeadDim, 128)
      .set(Fact::kIndexRopeDim, 64);
}

// GLM-5.3-Flash: no RoPE, rows of 512.
Facts flash(const std::string& machine, int64_t ranks, KvFormat rows) {
  return glm5(machine, ranks, rows)
      .set(Fact::kQkRopeHeadDim, 0)
      .set(Fact::kQkNopeHeadDim, 256)
      .set(Fact::kHeadSize, 512)
      .set(Fact::kIndexRopeDim, 0)
      .set(Fact::kArchitecture, Architecture::kGlm5Next);
}

// DeepSeek-V4 and 4.1: rows of 512 with RoPE inside.
Facts v4(const std::string& machine, int64_t heads, int64_t topk) {
  return glm5(machine, 1, KvFormat::kFp8Ds)
      .set(Fact::kHeads, heads)
      .set(Fact::kTopk, topk)
      .set(Fact::kKvLoraRank, 448)
      .set(Fact::kHeadSize, 512)
      .set(Fact::kArchitecture, Architecture::kDeepseek4);
}

struct Report {
  const char* thread;
  const char* catalog;
  const char* operation;
  Facts asked;
  std::vector<const char*> said;  // parts of the explanation
};

constexpr auto kPacked = KvFormat::kFp8Ds;
constexpr auto kBf16 = KvFormat::kBf16;

std::vector<Report> vllm_reports() {
  const char* vllm = "vllm-2026-09";
  return {
      {"vllm#46726",
       vllm,
       "indexer_scores",
       glm5("rtx-pro-6000", 8, kPacked),
       {"sm: needs one of 90, 100, 103, found 120"}},
      {"vllm#53963",
       vllm,
       "cache_writer",
       flash("rtx-pro-6000", 2, kPacked),
       {"qk_rope_head_dim: needs exactly 64, found 0"}},
      {"vllm#55773",
       vllm,
       "cache_writer",
       flash("gb10", 8, kPacked),
       {"qk_rope_head_dim: needs exactly 64, found 0"}},
      {"vllm#55277",
       vllm,
       "attention",
       flash("rtx-pro-6000", 2, kPacked).set(Fact::kTopk, 2176),
       {"topk: needs exactly 2048, found 2176"}},
      {"vllm#55221",
       vllm,
       "attention",
       flash("h200", 2, KvFormat::kFp8E4m3),
       {"kv_format: needs exactly bf16, found fp8_e4m3"}},
      {"vllm#56837",
       vllm,
       "attention",
       v4("rtx-pro-6000", 64, 1152),
       {"topk: needs exactly 2048, found 1152"}},
      {"flashinfer#5135",
       vllm,
       "attention",
       v4("rtx-pro-6000", 16, 512),
       {"topk: needs exactly 2048, found 512"}},
      {"flashinfer#4336",
       vllm,
       "attention",
       v4("rtx-pro-6000", 32, 256),
       {"topk: needs exactly 2048, found 256"}},
      {"vllm#55526",
       vllm,
       "attention",
       v4("rtx-pro-6000", 8, 128),
       {"topk: needs exactly 2048, found 128"}},
      {"spark-vllm-docker#67",
       "vllm-2026-02",
       "attention",
       glm5("gb10", 4, KvFormat::kFp8E4m3),
       {"qk_nope_head_dim: needs exactly 128, found 192", "sm: needs from 90 to 109, found 121"}},
      {"vllm#57932",
       vllm,
       "attention",
       flash("rtx-pro-6000", 8, kBf16),
       {"kv_format: needs one of fp8_ds, fp8_e4m3, found bf16"}},
  };
}

std::vector<Report> sglang_reports() {
  const char* sglang = "sglang-2026";
  return {
      {"sglang#29580",
       sglang,
       "indexer_scores",
       glm5("rtx-pro-6000", 8, kPacked),
       {"sm: needs one of 90, 100, 103, found 120"}},
      {"sglang#33134",
       sglang,
       "attention",
       glm5("gb10", 2, kPacked).set(Fact::kTopk, 192),
       {"topk: needs one of 128, 512, 1024, 2048, found 192"}},
      {"sglang#26087",
       sglang,
       "attention",
       glm5("rtx-pro-6000", 8, kBf16),
       {"flashmla_sparse", "fa3", "sm: needs exactly 90, found 120",
        "sm: needs from 100 to 109, found 120",
        "smem_per_block: needs at least 169984, found 101376",
        "kv_format: needs exactly fp8_ds, found bf16", "selection: needs exactly dense"}},
      {"sglang#40286",
       sglang,
       "attention",
       flash("gb10", 1, kPacked),
       {"sm: needs from 100 to 109, found 121",
        "smem_per_block: needs at least 169984, found 101376",
        "kv_format: needs exactly bf16, found fp8_ds",
        "architecture: needs one of deepseek32, glm-dsa, found glm5next"}},
      {"sglang#37105",
       sglang,
       "attention",
       glm5("rtx-4090", 8, kBf16),
       {"smem_per_block: needs at least 169984, found 101376"}},
  };
}

std::vector<Report> accepted_then_dies() {
  std::vector<Report> all = vllm_reports();
  for (Report& report : sglang_reports()) all.push_back(std::move(report));
  return all;
}

// A choice, or for every candidate at least one refusal that says all it has to.
testing::AssertionResult complete(const Choice& choice) {
  if (choice.candidates.empty()) return testing::AssertionFailure() << "no candidate";
  for (const Candidate& candidate : choice.candidates) {
    if (candidate.refusals.empty() && !choice.chosen) {
      return testing::AssertionFailure() << candidate.name << " could run and is not chosen";
    }
    for (const Refusal& r : candidate.refusals) {
      if (r.what.empty() || r.needed.empty() || r.found.empty() || r.because.empty()) {
        return testing::AssertionFailure() << candidate.name << " does not say all of " << r.what;
      }
    }
  }
  return testing::AssertionSuccess();
}

TEST(AcceptedThenDies, TheCatalogueRefusesWithTheValues) {
  for (const Report& report : accepted_then_dies()) {
    SCOPED_TRACE(report.thread);
    const Catalog catalog = read_catalog(report.catalog).value();
    const auto choices = evaluate_catalog(catalog, report.asked);
    const Choice* choice = find_choice(choices, report.operation);
    ASSERT_NE(choice, nullptr);
    EXPECT_FALSE(choice->chosen) << choice->candidates[choice->chosen.value_or(0)].name;
    EXPECT_TRUE(complete(*choice));
    const std::string text = explain(*choice);
    for (const char* part : report.said) EXPECT_THAT(text, testing::HasSubstr(part));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("unknown")));
  }
}

// The same shapes put to our own backends: on the host each runs, whatever the heads, the top-k or
// the RoPE dimension; on the GPU of the report every refusal says why.
TEST(AcceptedThenDies, OurOwnListAnswersEachCompletely) {
  for (Report& report : accepted_then_dies()) {
    SCOPED_TRACE(report.thread);
    EXPECT_TRUE(complete(attention::select_backend(report.asked)));
    report.asked.set(Fact::kDevice, DeviceKind::kCpu).set(Fact::kKvFormat, KvFormat::kBf16);
    const Choice choice = attention::select_backend(report.asked);
    EXPECT_TRUE(choice.chosen) << explain(choice);
  }
}

// omlx#2956: a top-k without an instance of its own fell back silently. Here every top-k has the
// same implementation.
TEST(AcceptedThenDies, NoTopkFallsToAnotherBackend) {
  for (const int64_t topk : {64, 128, 192, 256, 512, 1024, 1152, 2048, 2176}) {
    for (const int64_t heads : {1, 2, 4, 8, 16, 32, 64, 128}) {
      for (const int64_t rope : {0, 64}) {
        const Choice choice =
            attention::select_backend(glm5("cpu-16-core-desktop", 1, KvFormat::kBf16)
                                          .set(Fact::kTopk, topk)
                                          .set(Fact::kHeads, heads)
                                          .set(Fact::kQkRopeHeadDim, rope));
        ASSERT_TRUE(choice.chosen);
        EXPECT_EQ(attention::chosen_backend(choice).name, "cpu_simd")
            << "the best of the host's, not a later one";
      }
    }
  }
}

// T-1.1 for every machine, catalogue and row format: an answer, or all reasons.
TEST(Catalogues, AnswerEveryMachineCompletely) {
  for (const std::string& machine : device::machine_names()) {
    for (const std::string& name : catalog_names()) {
      const Catalog catalog = read_catalog(name).value();
      for (const auto format : {KvFormat::kF16, KvFormat::kBf16, KvFormat::kFp8Ds,
                                KvFormat::kFp8E4m3, KvFormat::kQ8_0}) {
        for (const Facts& facts : {glm5(machine, 8, format), flash(machine, 8, format)}) {
          for (const Choice& choice : evaluate_catalog(catalog, facts)) {
            EXPECT_TRUE(complete(choice)) << name << " on " << machine << ": " << choice.operation;
          }
        }
      }
    }
  }
}

TEST(DeadEntries, OfOtherEnginesAreKnownOnOneCard) {
  const CatalogOperation attention = read_catalog("vllm-2026-02").value().operations.at(0);
  std::vector<std::vector<Rule>> rules;
  std::vector<ListEntry> entries;
  for (const CatalogEntry& entry : attention.entries) {
    rules.emplace_back();
    for (const CatalogRule& rule : entry.rules) rules.back().push_back(rule.rule());
  }
  for (size_t i = 0; i < rules.size(); ++i)
    entries.push_back({attention.entries[i].name, rules[i]});
  std::vector<std::string> able;
  for (const Standing& standing : standings(entries, device_of("rtx-pro-6000"))) {
    if (standing.fate == Standing::Fate::kCanWin) able.push_back(standing.name);
  }
  EXPECT_THAT(able, testing::ElementsAre("TRITON_MLA")) << "dense only: nothing sparse is left";
}

}  // namespace
}  // namespace topknot
