// SPDX-License-Identifier: Apache-2.0
#include "generate/request/latent_facts.h"

#include "base/json.h"

namespace vfm::generate {
Json latent_facts(const Json& record) {
  Json facts;
  for (const char* name : {"prompt",
                           "negative_prompt",
                           "seed",
                           "frames",
                           "width",
                           "height",
                           "fps",
                           "sampler",
                           "as",
                           "steps",
                           "guidance",
                           "guidance_low",
                           "sigma_min",
                           "sigma_max",
                           "sigmas",
                           "temperature",
                           "top_p",
                           "weights",
                           "model_hash",
                           "shift",
                           "condition_frames",
                           "condition_xxh3",
                           "augment_sigma",
                           "noise_xxh3",
                           "embedding_xxh3",
                           "negative_embedding_xxh3",
                           "lora",
                           "fp8",
                           "quantize",
                           "parallel",
                           "compute",
                           "device",
                           "encoded_in"})
    if (record.contains(name)) facts[name] = record[name];
  return facts;
}

}  // namespace vfm::generate
