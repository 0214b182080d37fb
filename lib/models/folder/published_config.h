// Models without a config.json of diffusers or transformers, under the names of their authors:
// NVIDIA's checkpoints of Cosmos-1.0 (model.pt, autoencoder.jit), and the parts of Wan, also as
// ComfyUI, Kijai and city96 publish them (models/folder/files_layout.cc). The format of the file
// does not matter. The configuration follows from the names and shapes of the tensors, and from the
// list of published models. Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "io/tensor_set.h"

namespace vfm::models {

/// The configuration of the diffusion network (ForeignNetwork::published), video tokenizer
/// (AutoencoderKLCosmos, CausalDiscreteVideoTokenizer or AutoencoderKLWan) or text encoder (t5 or
/// umt5) that has these tensors, with "_class_name" or "model_type"; null if they belong to none.
/// Values that are not in the tensors are those of the published models; the tokenizer's FSQ levels
/// are 8, 8, 8, 5, 5, 5. Reads only names and shapes. Throws Error{usage} for tensors with these
/// names that do not make such a network.
Json published_config(const io::TensorSet& tensors);

}  // namespace vfm::models
