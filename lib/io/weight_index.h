// The index of weights that are spread over several files: NAME.safetensors.index.json or
// NAME.bin.index.json, as diffusers and transformers write them.
//
//   {"metadata": {...}, "weight_map": {TENSOR: FILE, ...}}     FILE without a folder
// Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "io/tensor_set.h"

namespace vfm::io {

struct WeightIndex {
  std::map<std::string, std::string> file_of;  ///< tensor -> file
  std::set<std::string> files;                 ///< in the folder of the index
};

/// Reads `path`: such an index ("….json"), or the only file of weights. Throws Error for an invalid
/// index, and for a file in another folder.
WeightIndex read_weight_index(const std::string& path);

/// Throws Error, naming the index, unless the set has every tensor that it lists.
void check_weight_index(const WeightIndex& index, const TensorSet& set);

}  // namespace vfm::io
