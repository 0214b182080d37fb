// Reads NAME.safetensors.index.json or NAME.bin.index.json, the index of weights in several files,
// as diffusers and transformers write it. FILE is a name without folder.
//
//   {"metadata": {...}, "weight_map": {TENSOR: FILE, ...}}
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "io/tensor_set.h"

namespace vfm::io {

struct WeightIndex {
  std::map<std::string, std::string> file_of;  ///< File of each tensor.
  std::set<std::string> files;                 ///< Names of files in the index's folder.
};

/// Reads the index `path` ("….json"). For any other `path`, returns an index whose only file is
/// `path`. Throws Error if the index is invalid or names a file in another folder.
WeightIndex read_weight_index(const std::string& path);

/// Throws Error, which names the index, unless the set has every tensor in the index.
void check_weight_index(const WeightIndex& index, const TensorSet& set);

}  // namespace vfm::io
