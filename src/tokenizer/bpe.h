// Byte-pair encoding of one piece: start with one token per byte; repeatedly merge the adjacent
// pair of lowest rank (leftmost first) until no adjacent pair is in the merge table. Source:
// Sennrich et al. 2016 (arXiv:1508.07909). O(n log n): a heap whose stale entries are skipped.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace topknot::tokenizer {

// Merge rules by rank, found by pair. Ids are not checked here.
class MergeTable {
 public:
  struct Rule {
    int32_t left, right, merged;
  };

  explicit MergeTable(size_t expected_rules = 0);
  // The next rank's rule; false, and nothing added, if the pair already has one.
  bool add(const Rule& rule);
  const Rule& rule(uint32_t rank) const { return rules_[rank]; }
  std::optional<uint32_t> find(int32_t left, int32_t right) const;
  size_t size() const { return rules_.size(); }

 private:
  struct Slot {
    uint64_t pair;
    uint32_t rank;
  };
  static constexpr uint32_t kEmpty = UINT32_MAX;
  size_t slot_of(uint64_t pair) const;
  void rebuild(size_t slot_count);

  std::vector<Rule> rules_;
  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
};

// The working memory of merging, kept between the pieces of one text. One thread at a time.
class BpeMerger {
 public:
  // Both must outlive the merger; byte_ids[b] is the token of byte b.
  BpeMerger(const MergeTable& table, const std::array<int32_t, 256>& byte_ids)
      : table_(table), byte_ids_(byte_ids) {}
  // Appends the tokens of `piece`: not empty, under 4 GiB.
  void append_tokens(std::string_view piece, std::vector<int32_t>* ids);

 private:
  // A token of the piece so far, at the index of its first byte; neighbours by index.
  struct Symbol {
    int32_t id;  // kMergedAway once it is part of its left neighbour
    uint32_t prev, next;
  };
  // Rank in the high half, position in the low: the smallest is the pair to merge next.
  using Candidate = uint64_t;
  void push_candidate(uint32_t left, bool into_heap);
  void merge(uint32_t left, int32_t merged);

  const MergeTable& table_;
  const std::array<int32_t, 256>& byte_ids_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace topknot::tokenizer
