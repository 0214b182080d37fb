// Reads the index of weights in several files: NAME.safetensors.index.json or NAME.bin.index.json,
// as diffusers and transformers write them.
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
  std::set<std::string> files;                 ///< names of files in the folder of the index
};

/// Reads the index `path` ("….json"). For any other `path`, returns an index with `path` as the
/// only file of weights. Throws Error for an invalid index, and for one that names a file in
/// another folder.
WeightIndex read_weight_index(const std::string& path);

/// Throws Error, which names the index, unless the set has every tensor that the index lists.
void check_weight_index(const WeightIndex& index, const TensorSet& set);

}  // namespace vfm::io
