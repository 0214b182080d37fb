// A trainable tensor and its gradient, under a global name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::nn {

/// Names and shapes are diffusers', so that a checkpoint needs no conversion. The master value and
/// the gradient are f32; a layer that computes in bf16 keeps its own copy of the value and
/// refreshes it when `version` has moved. Both tensors are made by the model and stay where they
/// are: write into them, never replace them (queries, keys and values of a layer lie one after the
/// other, to be one matrix).
struct Parameter {
  std::string name;
  Tensor value;               ///< f32 master
  Tensor grad;                ///< f32, same shape, zero at first; += by backward
  bool decay = true;          ///< whether weight decay applies (not for norms and position tables)
  std::uint64_t version = 1;  ///< whoever changes `value` increments it
};

using ParameterList = std::vector<Parameter*>;

/// Sets all gradients to zero: before each step.
void zero_gradients(const ParameterList& parameters);

}  // namespace vfm::nn
