// glm-dsa: GLM-5, 5.1, 5.2, 5.3 (models.md sections 1, 4 and 5).
#include "model/architectures.h"

namespace topknot::model {

ModelConfig read_glm_dsa(MetadataReader& reader) {
  ModelConfig config;
  config.architecture = "glm-dsa";
  read_mla(reader, &config);
  read_rope(reader, &config);
  read_moe(reader, ops::Gating::kSigmoid, &config);
  config.router_bias = config.router.experts > 0;
  // GLM's indexer rotates adjacent pairs; half-split turns text to noise past index_topk.
  read_indexer(reader, ops::RopeFlavour::kInterleaved, &config);
  return config;
}

}  // namespace topknot::model
