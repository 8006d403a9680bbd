// Shapes with names: models as they were published, and small ones for tests and benchmarks.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/stream_writer.h"
#include "synth/shape.h"
#include "synth/tensors.h"
#include "topknot/error.h"

namespace topknot::synth {

struct Preset {
  std::string_view name;  // "glm-5-ud-q4_k_xl"
  std::string_view description;
};

// In the order of --help.
std::span<const Preset> presets();

struct PresetModel {
  ModelShape shape;
  std::vector<TypeRule> types;
  gguf::SplitLimits split;
};

// kNotFound, with near names.
Result<PresetModel> find_preset(std::string_view name);

}  // namespace topknot::synth
