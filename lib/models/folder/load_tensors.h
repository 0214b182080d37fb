// Loads the tensors of a file into a model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/tensor_set.h"
#include "nn/parameter.h"
#include "ops/matmul/block_rows.h"

namespace vfm::models {

/// The destination of a tensor of a set: `store` gets its values as f32 on the CPU, valid during
/// the call.
struct TensorTarget {
  std::string name;
  Shape shape;
  std::function<void(const Tensor&)> store;
  bool codes = false;  ///< the tensor is U8, no floats
};

/// Returns the most memory in bytes that reading the set has at once beside the parameters: of one
/// tensor the bytes of the file, and the converted numbers if the file has another type than F32.
std::uint64_t loading_bytes(const io::TensorSet& set);

/// Hands each tensor of `set` to its target, in the order of the targets. F32 is not copied; all
/// that read_floats() reads is converted. The mapped memory of a tensor is free after its store.
/// Names, shapes and types are compared before any value is read. Throws one Error that lists all
/// tensors that are missing, left over, of another shape or not floats.
void load_tensors(const io::TensorSet& set, const std::vector<TensorTarget>& targets);

/// Only that comparison. The targets' `store` may be empty.
void check_tensors(const io::TensorSet& set, const std::vector<TensorTarget>& targets);

/// The same comparison for a model's parameters. Does not touch their values, so parameters that
/// are not trained take no memory before they are written.
void check_tensors(const io::TensorSet& set, const nn::ParameterList& parameters);

/// The destination of a part of a tensor, piece by piece: `store` gets some of the values, f32 on
/// the CPU, valid during the call. `begin` is the number of requested values before them, in C
/// order.
struct RangeTarget {
  std::string name;
  io::TensorRange range;
  std::function<void(const Tensor& values, std::int64_t begin)> store;
  /// The requested elements of the range: `count` from `first` on; -1: all of them.
  std::int64_t first = 0, count = -1;
  bool codes = false;  ///< the tensor is U8, and `store` gets its values as u8

  std::int64_t elements() const { return count < 0 ? range.elements() : count; }
};

/// The same for parts of tensors. Nothing else is read (TensorSet::read), except that blocks are
/// read whole. Here, too, the tensors
/// must be exactly those of the targets, with the shapes of the ranges. 4 MiB of values are in
/// memory at a time, and the same number of values in f32.
void load_ranges(const io::TensorSet& set, const std::vector<RangeTarget>& targets);

/// The part of the whole tensor that a parameter, or the parameter of its stretch, holds, from its
/// placement.
io::TensorRange held_range(const nn::Parameter& parameter);
/// A target that writes held_range() to a parameter's value.
RangeTarget range_target(nn::Parameter& parameter);

/// Hands the tensors to the parameters of their names. Throws as load_tensors() does.
void load_parameters(const io::TensorSet& set, const nn::ParameterList& parameters);

/// A target that writes to a parameter's value.
TensorTarget value_target(nn::Parameter& parameter);

/// The DType for `dtype`, which must be "F32", "F16" or "BF16".
DType float_type(std::string_view dtype);
/// Returns whether the values are codes that read_floats() makes numbers: blocks
/// (base/block_format.h), F8_E4M3 or F8_E5M2.
bool is_coded(const io::TensorView& from);
/// F32, F16, BF16 or codes as f32, times the factors of the view. Borrows the data if they are f32
/// already. A factor's product is rounded to f32.
Tensor read_floats(const io::TensorView& from);
/// The same of elements [first, first + count) of the tensor, [count]. Reads only these, and of
/// blocks those that hold them.
Tensor read_floats(const io::TensorView& from, std::int64_t first, std::int64_t count);
/// A tensor of blocks, borrowed, as a matrix of its last dimension by all others. On Device::meta
/// it must not be read.
ops::BlockRows stored_blocks(const io::TensorView& from, Device device = Device::cpu);

}  // namespace vfm::models
