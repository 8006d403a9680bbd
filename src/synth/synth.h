// Makes GGUF models with random weights: any shape of the family, any mix of types, whole or split,
// or only their headers at full apparent size. The same request gives the same bytes, whatever the
// number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gguf/stream_writer.h"
#include "synth/shape.h"
#include "synth/tensors.h"
#include "topknot/error.h"

namespace topknot::synth {

inline constexpr double kMinGain = 1e-3;
inline constexpr double kMaxGain = 1e3;
inline constexpr int kMaxThreads = 1024;

struct Request {
  ModelShape shape;
  // Over the built-in rule that keeps router and index head weights F32; empty: F16.
  std::vector<TypeRule> types;
  gguf::StreamOptions output;
  std::string path;  // with or without ".gguf"
  uint64_t seed = 1;
  double gain = 1;  // on the standard deviation of every weight
  int threads = 1;
  bool quiet = false;                         // no progress line
  const std::atomic<bool>* cancel = nullptr;  // looked at between pieces; may be null
};

struct Summary {
  std::vector<gguf::PlannedPart> parts;
  uint64_t bytes = 0;  // of all parts, as they appear
  uint64_t tensors = 0;
  uint64_t parameters = 0;
  std::map<tensor::DType, uint64_t> type_bytes;
  std::map<tensor::DType, uint64_t> type_tensors;
};

// kInvalidArgument: the shape is none (all reasons at once), a rule, the gain or the threads are
// out of range; and what gguf::write_model() says. kCancelled: `cancel` became true; nothing is
// left behind.
Result<Summary> make_model(const Request& request);

// Parts and sizes of the same, writing nothing.
Result<Summary> plan_model(const Request& request);

// "48G", "500M", "1.5GiB", "1000": G and M are decimal, as in split sizes of other tools.
Result<uint64_t> parse_size(std::string_view text);

}  // namespace topknot::synth
