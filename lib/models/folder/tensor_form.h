// Values of tensors between a form of other programs and the form here (models/dit/foreign.h):
// stacks are split or fused, matrices are transposed, and shapes change.
// Thread-safety: free functions and values, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/tensor_set.h"
#include "models/dit/foreign.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// Values that are not in a file as they are needed.
using TensorCopies = std::vector<std::vector<std::byte>>;

/// Changes tensors of a file in this form, which have their names here, into those of a network of
/// `config`. Splits stacks and changes shapes without a copy. Transposed matrices are read and
/// copied; the result owns the copies. A tensor that does not fit the network stays as it is.
/// Throws Error for a type of values that cannot be transposed.
TensorCopies take_form(const TensorForm& form, const NetworkConfig& config,
                       std::vector<io::TensorView>& tensors);

/// A tensor of a file to be written, and the tensors here that it is made of.
struct WrittenTensor {
  std::string name;
  Shape shape;
  std::vector<std::string> parts;  ///< rows one after the other
  bool transposed = false;         ///< of one part
};

/// Returns the tensors of a file in this form that has the values of `set`, a network of `config`.
/// Without a form they are those of the set.
std::vector<WrittenTensor> written_tensors(const TensorForm* form, const NetworkConfig& config,
                                           const io::TensorSet& set);

/// Returns elements [first, first + count) of the tensor as f32. They are in the memory of the set
/// or of the result.
Tensor written_values(const WrittenTensor& tensor, const io::TensorSet& set, std::int64_t first,
                      std::int64_t count);

}  // namespace vfm::models
