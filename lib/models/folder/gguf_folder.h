// Qwen2.5-VL's weights as llama.cpp has them: two GGUF files (io/gguf.h) in the model's folder, the
// text model (architecture "qwen2vl", in one file or split) and the tower that sees ("clip", with
// the projector "qwen2.5vl_merger"; mmproj-….gguf), under the names that transformers gives them.
//
// llama.cpp keeps queries and keys of this model as they are (it changes their order in Llama's),
// cuts the tower's joined queries, keys and values in three, and its patches' convolution in one
// for each frame: these are put together again. All else stays mapped.
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

/// Whether there are files whose names end with ".gguf".
bool has_gguf_weights(const std::string& folder);

/// Throws Error: a file is damaged, not of this model, missing or there twice (of two sizes of one
/// model, say); parts that do not fit each other. Whether the tensors are those of the
/// configuration is not looked at.
std::unique_ptr<io::TensorSet> open_gguf_weights(const std::string& folder);

}  // namespace vfm::models
