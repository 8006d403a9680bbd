// What a GGUF file is, as one JSON object: the source of both forms of `topknot inspect`.
#pragma once

#include "cli/output.h"
#include "gguf/model_file.h"

namespace topknot::cli {

struct InspectionOptions {
  bool tensors = false;  // list every tensor
  bool keys = false;     // list every metadata key
};

// Shows what can be shown, also of files that cannot be run; "refusals" says what would be refused
// and "runnable" whether that is nothing.
Json inspect_model(const gguf::ModelFile& file, const InspectionOptions& options);

}  // namespace topknot::cli
