// NVIDIA's own checkpoints of Cosmos-1.0: a torch checkpoint (model.pt, autoencoder.jit), or the
// same in safetensors, under NVIDIA's names and without a config.json of diffusers. The
// configuration follows from the names and shapes of the tensors, and from the list of published
// models.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "io/tensor_set.h"

namespace vfm::models {

/// The configuration of the diffusion network (ForeignNetwork::published) or video tokenizer
/// (AutoencoderKLCosmos, CausalDiscreteVideoTokenizer or AutoencoderKLWan) that has these tensors,
/// with
/// "_class_name"; null if they belong to neither. Values that are not in the tensors are those of
/// the published models; the tokenizer's FSQ levels are 8, 8, 8, 5, 5, 5. Reads only names and
/// shapes. Throws Error{usage} for tensors with these names that do not make such a network.
Json published_config(const io::TensorSet& tensors);

}  // namespace vfm::models
