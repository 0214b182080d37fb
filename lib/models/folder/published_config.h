// NVIDIA's own checkpoints of Cosmos-1.0: a torch checkpoint (model.pt, autoencoder.jit), or the
// same in safetensors, under NVIDIA's names, beside which no config.json of diffusers stands. What
// that would say follows from the names and shapes of the tensors, and from which models were
// published.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "io/tensor_set.h"

namespace vfm::models {

/// The configuration of a diffusion transformer (CosmosTransformer3DModel) or a video tokenizer
/// (AutoencoderKLCosmos, or CausalDiscreteVideoTokenizer) whose tensors these are, "_class_name"
/// included; null: they are of neither. Not in the tensors, and so as it is published: the rope
/// scale, 2, 2, 2 of width 5120 (14B) and else 2, 1, 1; the padding mask, which all have; the FSQ
/// levels 8, 8, 8, 5, 5, 5. Throws Error{usage} for tensors of these names that are no such
/// network. Names and shapes alone are read.
/// Source: NVIDIA's cosmos-predict1, config/inference; diffusers
/// scripts/convert_cosmos_to_diffusers.py.
Json published_config(const io::TensorSet& tensors);

}  // namespace vfm::models
