// Tokenizers within files of weights of text encoders:
//
//   .safetensors   ComfyUI's have the bytes of spiece.model as the tensor "spiece_model", U8
//   .gguf          the pieces, their scores and types and the map of characters as settings
//                  "tokenizer.ggml...", for the model "t5"
// Sources: ComfyUI's name of the tensor; llama.cpp's gguf-py, constants.py (Keys.Tokenizer), and
// sentencepiece's sentencepiece_model.proto.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::models {

/// The bytes of a spiece.model (sentencepiece's ModelProto); "" if the file has no tokenizer.
/// Throws Error for a damaged file, or settings that do not belong together.
std::string inner_tokenizer(const std::string& file);

}  // namespace vfm::models
