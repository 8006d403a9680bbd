// Sparse MLA over raw pointers: one token of GLM-5's shape attends to 2,048 of 8,192 cached rows.
// The result is compared with the definition, written as a loop.
#include <topknot/attention.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

int main() {
  constexpr int64_t kHeads = 8, kRank = 512, kRope = 64, kTopk = 2048, kSlots = 8192;
  constexpr int64_t kWidth = kRank + kRope;
  const float sm_scale = 1 / std::sqrt(192.0F + 64.0F);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> q(kHeads * kWidth), rows(kSlots * kWidth);
  for (float& value : q) value = normal(random);
  for (float& value : rows) value = normal(random);
  std::vector<int32_t> topk_slots(kTopk, -1);  // as an indexer gives them; here three of four empty
  for (int64_t k = 0; k < kTopk; k += 4)
    topk_slots[k] = static_cast<int32_t>(k * 2654435761 % kSlots);

  auto decode = topknot::SparseMlaDecode::create(
      {.heads = kHeads, .topk = kTopk, .kv_row_type = topknot::ElementType::kF32});
  std::vector<float> out(kHeads * kRank), lse(kHeads);
  topknot::SparseMlaDecodeArgs args;
  args.q = q.data();
  args.kv_rows = rows.data();
  args.slots = kSlots;
  args.topk_slots = topk_slots.data();
  args.out = out.data();
  args.lse = lse.data();
  args.tokens = 1;
  args.sm_scale = sm_scale;
  const auto done = decode ? decode->run(args) : topknot::Status(decode.error());
  if (!done) {
    std::fprintf(stderr, "error: %s\n", done.error().to_string().c_str());
    return 1;
  }

  double largest = 0;
  for (int64_t h = 0; h < kHeads; ++h) {
    std::vector<double> sum(kRank);
    for (const int32_t slot : topk_slots) {
      if (slot < 0) continue;
      double score = 0;
      for (int64_t c = 0; c < kWidth; ++c)
        score += double{q[h * kWidth + c]} * rows[slot * kWidth + c];
      // lse is the logarithm of the sum of all weights, so this is one softmax weight.
      const double weight = std::exp(score * sm_scale - lse[h]);
      for (int64_t c = 0; c < kRank; ++c) sum[c] += weight * rows[slot * kWidth + c];
    }
    for (int64_t c = 0; c < kRank; ++c)
      largest = std::fmax(largest, std::fabs(sum[c] - out[h * kRank + c]));
  }
  std::printf("%s: largest difference from the definition %.1e\n",
              decode->attention_backend().c_str(), largest);
  return largest < 1e-4 ? 0 : 1;  // outputs are of order 0.1; a wrong row or scale shows at once
}
