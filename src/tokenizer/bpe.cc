#include "tokenizer/bpe.h"

#include <algorithm>
#include <functional>

#include "base/assert.h"

namespace topknot::tokenizer {
namespace {

constexpr int32_t kMergedAway = -1;
constexpr uint32_t kNone = UINT32_MAX;
constexpr size_t kMinSlots = 16;

uint64_t pair_key(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

// Spreads neighbouring ids over the table (multiplication by 2^64 / golden ratio, then the high
// bits).
uint64_t mix(uint64_t key) {
  key ^= key >> 32;
  key *= 0x9E3779B97F4A7C15u;
  return key ^ (key >> 29);
}

}  // namespace

MergeTable::MergeTable(size_t expected_rules) {
  rules_.reserve(expected_rules);
  size_t slot_count = kMinSlots;
  while (slot_count < 2 * expected_rules) slot_count *= 2;
  rebuild(slot_count);
}

// The slot that holds `pair`, or the empty one where it belongs.
size_t MergeTable::slot_of(uint64_t pair) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = mix(pair) & mask;
  while (slots_[slot].rank != kEmpty && slots_[slot].pair != pair) slot = (slot + 1) & mask;
  return slot;
}

void MergeTable::rebuild(size_t slot_count) {
  slots_.assign(slot_count, Slot{0, kEmpty});
  for (uint32_t rank = 0; rank < rules_.size(); ++rank) {
    const uint64_t pair = pair_key(rules_[rank].left, rules_[rank].right);
    slots_[slot_of(pair)] = Slot{pair, rank};
  }
}

bool MergeTable::add(const Rule& rule) {
  if (2 * (rules_.size() + 1) > slots_.size()) rebuild(2 * slots_.size());
  const uint64_t pair = pair_key(rule.left, rule.right);
  Slot& slot = slots_[slot_of(pair)];
  if (slot.rank != kEmpty) return false;
  slot = Slot{pair, static_cast<uint32_t>(rules_.size())};
  rules_.push_back(rule);
  return true;
}

std::optional<uint32_t> MergeTable::find(int32_t left, int32_t right) const {
  const Slot& slot = slots_[slot_of(pair_key(left, right))];
  if (slot.rank == kEmpty) return std::nullopt;
  return slot.rank;
}

void BpeMerger::push_candidate(uint32_t left, bool into_heap) {
  const uint32_t right = symbols_[left].next;
  if (right == kNone) return;
  const auto rank = table_.find(symbols_[left].id, symbols_[right].id);
  if (!rank) return;
  heap_.push_back((static_cast<Candidate>(*rank) << 32) | left);
  if (into_heap) std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void BpeMerger::merge(uint32_t left, int32_t merged) {
  Symbol& kept = symbols_[left];
  Symbol& gone = symbols_[kept.next];
  gone.id = kMergedAway;
  kept.id = merged;
  kept.next = gone.next;
  if (kept.next != kNone) symbols_[kept.next].prev = left;
  if (kept.prev != kNone) push_candidate(kept.prev, true);
  push_candidate(left, true);
}

void BpeMerger::append_tokens(std::string_view piece, std::vector<int32_t>* ids) {
  TOPKNOT_ASSERT(!piece.empty());
  TOPKNOT_ASSERT(piece.size() < kNone);
  const auto count = static_cast<uint32_t>(piece.size());
  symbols_.clear();
  heap_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(piece[i])];
    symbols_.push_back(Symbol{id, i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1});
  }
  for (uint32_t i = 0; i < count; ++i) push_candidate(i, false);
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  while (!heap_.empty()) {
    const Candidate best = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    const auto left = static_cast<uint32_t>(best);
    const MergeTable::Rule& rule = table_.rule(static_cast<uint32_t>(best >> 32));
    const Symbol& symbol = symbols_[left];
    // Stale when either side was merged since: the pair at this place is then another one, or none.
    if (symbol.id != rule.left || symbol.next == kNone) continue;
    if (symbols_[symbol.next].id != rule.right) continue;
    merge(left, rule.merged);
  }
  for (uint32_t i = 0; i != kNone; i = symbols_[i].next) ids->push_back(symbols_[i].id);
}

}  // namespace topknot::tokenizer
