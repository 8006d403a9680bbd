// Which attention backend runs sparse MLA decode of GLM-5's shape on a machine, and why not
// another.
//   select_backend [MACHINE [KV_FORMAT]]    a name of docs/devices or a JSON file; none: this one
#include <topknot/plan.h>

#include <cstdio>

int main(int argc, char** argv) {
  topknot::AttentionFacts facts;
  facts.machine = argc > 1 ? argv[1] : "";
  facts.kv_format = argc > 2 ? argv[2] : "bf16";
  facts.heads = 64;
  facts.kv_lora_rank = 512;
  facts.qk_nope_head_dim = 192;
  facts.qk_rope_head_dim = 64;
  facts.topk = 2048;
  const auto choice = topknot::select_attention_backend(facts);
  if (!choice) {
    std::fprintf(stderr, "error: %s\n", choice.error().to_string().c_str());
    return 2;
  }
  std::printf("%s (%s)\n", choice->operation.c_str(), choice->asked.c_str());
  for (const topknot::PlanCandidate& candidate : choice->candidates) {
    const bool chosen = candidate.name == choice->chosen;
    std::printf("  %-14s %s\n", candidate.name.c_str(),
                chosen                       ? "chosen"
                : candidate.refusals.empty() ? "could run, too"
                                             : "refused");
    for (const topknot::PlanRefusal& refusal : candidate.refusals) {
      std::printf("    %s is %s, needed: %s, because %s", refusal.what.c_str(),
                  refusal.found.c_str(), refusal.needed.c_str(), refusal.because.c_str());
      if (!refusal.remedy.empty()) std::printf("; try %s", refusal.remedy.c_str());
      std::printf("\n");
    }
  }
  return choice->chosen.empty() ? 1 : 0;
}
