// The metadata of a shape, with the keys and value types of published files (gguf.md section 2).
#pragma once

#include <span>

#include "gguf/encoder.h"
#include "synth/shape.h"
#include "synth/tensors.h"

namespace topknot::synth {

// All but the split.* keys. `tensors` say what general.file_type must be.
gguf::MetadataEncoder make_metadata(const ModelShape& shape, std::span<const TensorPlan> tensors);

}  // namespace topknot::synth
