// Finds the files with a model's weights in a folder. save_pretrained of diffusers and transformers
// writes these names, where STEM is diffusion_pytorch_model, model or pytorch_model, and VARIANT a
// word such as fp16:
//
//   STEM.safetensors           STEM-00001-of-0000N.safetensors, STEM.safetensors.index.json
//   STEM.bin                   STEM-00001-of-0000N.bin, STEM.bin.index.json
//   STEM.VARIANT.safetensors   STEM.VARIANT-00001-of-..., STEM.safetensors.index.VARIANT.json
//   STEM.VARIANT.bin           the same with .bin
// Weights without a variant come first, and safetensors before .bin. If there are none of these, a
// torch checkpoint with any name is used (*.pt, *.pth, *.bin, *.jit), or else a GGUF file.
// Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/tensor_set.h"

namespace vfm::models {

/// The file of weights, or the index of several files, for the first stem that has one; "" if none
/// has. Throws Error if there are only variants, and more than one.
std::string find_weight_file(const std::string& folder, const std::vector<std::string>& stems);

/// Returns whether a path of weights is one file, not a folder.
bool is_weight_file(const std::string& path);

/// Returns whether open_model_weights() finds weights. Throws Error if it would have to choose.
bool has_model_weights(const std::string& folder);
/// Opens what find_weight_file() finds, or a torch checkpoint with another name. `folder` may also
/// be a file of weights. Throws Error if there are no weights, several candidates without the usual
/// name, or damaged files.
std::unique_ptr<io::TensorSet> open_model_weights(const std::string& folder);

/// Opens a file of weights, or an index, for the names and shapes of its tensors as they are there.
/// Reads no data of tensors.
std::unique_ptr<io::TensorSet> open_tensor_names(const std::string& file);

/// Opens a file of weights, or an index. Its name tells the format: .safetensors, with the factors
/// of 8-bit floats (models/folder/scaled_weights.h), .gguf, or a torch checkpoint.
std::unique_ptr<io::TensorSet> open_weight_file(const std::string& file);

}  // namespace vfm::models
