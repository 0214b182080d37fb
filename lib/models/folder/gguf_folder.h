// Qwen2.5-VL's weights in llama.cpp's format: two GGUF files (io/gguf.h) in the model's folder. One
// is the text model (architecture "qwen2vl", in one file or split), the other the vision tower
// ("clip", with the projector "qwen2.5vl_merger"; mmproj-….gguf). Tensors get the names that
// transformers uses.
//
// llama.cpp keeps this model's queries and keys as they are (it reorders those of Llama). It splits
// the tower's joined queries, keys and values into three tensors, and the convolution of its
// patches into one per frame; both are joined again. Everything else stays mapped.
// Sources: llama.cpp's convert_hf_to_gguf.py and gguf-py's tensor names.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "io/tensor_set.h"

namespace vfm::models {

/// The type of config.json whose weights may be GGUF files.
inline constexpr const char* kGgufType = "qwen2_5_vl";

/// Returns whether the folder has files whose names end with ".gguf".
bool has_gguf_weights(const std::string& folder);

/// Throws Error if a file is damaged, of another model, missing or present twice (for example in
/// two sizes of one model), or if parts do not fit together. Does not compare the tensors with the
/// configuration.
std::unique_ptr<io::TensorSet> open_gguf_weights(const std::string& folder);

}  // namespace vfm::models
