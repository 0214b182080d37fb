// Which files of a folder are a model's weights. What save_pretrained of diffusers and transformers
// writes, STEM being diffusion_pytorch_model, model or pytorch_model, and VARIANT a word such as
// fp16:
//
//   STEM.safetensors           STEM-00001-of-0000N.safetensors, STEM.safetensors.index.json
//   STEM.bin                   STEM-00001-of-0000N.bin, STEM.bin.index.json
//   STEM.VARIANT.safetensors   STEM.VARIANT-00001-of-..., STEM.safetensors.index.VARIANT.json
//   STEM.VARIANT.bin           the same with .bin
// Weights without a variant are taken where there are some, and safetensors before .bin. Else a
// torch checkpoint under any name (*.pt, *.pth, *.bin, *.jit).
// Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/tensor_set.h"

namespace vfm::models {

/// The file of weights, or the index of several, of the first of the stems that has some; "" if
/// none has. Throws Error where only variants are there, and more than one of them.
std::string find_weight_file(const std::string& folder, const std::vector<std::string>& stems);

/// Whether open_model_weights() finds some. Throws Error where that has to choose.
bool has_model_weights(const std::string& folder);
/// Opens what find_weight_file() finds, or a torch checkpoint of another name. Throws Error: no
/// weights, several of which none is the usual one, or files that are damaged.
std::unique_ptr<io::TensorSet> open_model_weights(const std::string& folder);

/// A file or an index of either format, by its name.
std::unique_ptr<io::TensorSet> open_weight_file(const std::string& file);

}  // namespace vfm::models
