// The folder of a tokenizer that is a network, before its weights are read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "models/folder/model_folder.h"
#include "models/tokenizer.h"

namespace vfm::models {

struct TokenizerFolder {
  /// Throws Error{usage} if the folder does not exist or holds no tokenizer of the type
  /// config.name, and for a `compute` that is not f32 or bf16.
  TokenizerFolder(const TokenizerConfig& config, Device device);
  /// The hash of the folder. Throws Error{usage} if `config` has another one.
  std::string hash(const TokenizerConfig& config) const;

  std::string folder;
  DType compute;  ///< if `config` does not say: f32 on the CPU, bf16 on a GPU
  ModelFolder model;
};

}  // namespace vfm::models
