// One function for each architecture string: metadata to ModelConfig. Problems go to the reader.
#pragma once

#include "model/config.h"
#include "model/metadata_reader.h"

namespace topknot::model {

ModelConfig read_glm_dsa(MetadataReader& reader);
ModelConfig read_deepseek2(MetadataReader& reader);
ModelConfig read_deepseek32(MetadataReader& reader);

// Parts that several architectures share.
void read_mla(MetadataReader& reader, ModelConfig* config);
void read_rope(MetadataReader& reader, ModelConfig* config);
// `absent_gating`: what a missing expert_gating_func means for this architecture.
void read_moe(MetadataReader& reader, ops::Gating absent_gating, ModelConfig* config);
// Leaves config->indexer empty when attention.indexer.top_k is absent or 0.
void read_indexer(MetadataReader& reader, ops::RopeFlavour default_flavour, ModelConfig* config);

}  // namespace topknot::model
