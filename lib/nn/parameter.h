// A trainable tensor and its gradient, under a global name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::nn {

/// Names and shapes are diffusers', so that a checkpoint needs no conversion. The master value and the
/// gradient are f32; a layer that computes in bf16 keeps its own copy of the value and refreshes it
/// when `version` has moved.
struct Parameter {
  std::string name;
  Tensor value;                ///< f32 master
  Tensor grad;                 ///< f32, same shape; allocated by the model; += by backward
  bool decay = true;           ///< whether weight decay applies (not for norms and position tables)
  std::uint64_t version = 1;   ///< whoever changes `value` increments it
};

using ParameterList = std::vector<Parameter*>;

}  // namespace vfm::nn
