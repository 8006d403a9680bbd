// What a chat template may cost. Templates come with model files and messages come from the
// network, so nothing here is left to their good behaviour: every bound below ends in an Error of
// code kOutOfRange.
#pragma once

#include <cstddef>
#include <cstdint>

namespace topknot::chat {

// Published templates are under 30 KiB.
inline constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
// Nesting of expressions and blocks in the source. The parser, the evaluator and the destructors of
// the syntax tree recurse this deep.
inline constexpr int kMaxSyntaxDepth = 150;
// Lists within lists. Printing, comparing and destroying values recurse this deep.
inline constexpr uint32_t kMaxValueDepth = 150;
inline constexpr size_t kMaxStringBytes = size_t{64} << 20;
inline constexpr size_t kMaxItems = 1'000'000;   // of one list or dict
inline constexpr int64_t kMaxRange = 100'000;    // the bound of jinja2's sandbox
inline constexpr int64_t kMaxPadding = 10'000;   // width or precision in a format
inline constexpr size_t kTextBytesPerStep = 64;  // text is charged to the step budget by this
inline constexpr int64_t kSliceStepLimit = int64_t{1} << 40;  // larger steps act the same

struct RenderLimits {
  uint64_t max_steps = 50'000'000;  // nodes evaluated, items visited, text copied; a few seconds
  size_t max_output_bytes = size_t{64} << 20;
  size_t max_live_bytes = size_t{256} << 20;  // all values that exist at one time
  int max_depth = 400;                        // evaluation depth: macro calls times their nesting
};

}  // namespace topknot::chat
