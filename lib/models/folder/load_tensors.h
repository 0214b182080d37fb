// From the tensors of a file into a model.
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

/// Where a tensor of a set goes: `store` gets its values as f32 on the CPU, valid during the call.
struct TensorTarget {
  std::string name;
  Shape shape;
  std::function<void(const Tensor&)> store;
};

/// Hands each tensor of `set` to its target, in the order of the targets; F32 is not copied, F16
/// and BF16 are converted. Before any value is read, names, shapes and types are compared: throws
/// one Error that lists the tensors that are missing, left over, of another shape or not floats.
void load_tensors(const io::TensorSet& set, const std::vector<TensorTarget>& targets);

/// That comparison alone; the targets' `store` may be empty.
void check_tensors(const io::TensorSet& set, const std::vector<TensorTarget>& targets);

/// The same with a model's parameters, whose values do not matter: of one that is not to be trained
/// no memory is touched before they are written.
void check_tensors(const io::TensorSet& set, const nn::ParameterList& parameters);

/// Where a part of a tensor goes, piece by piece: `store` gets some of its values, f32 on the CPU,
/// valid during the call; `begin` of those that are asked for are before them, in C order.
struct RangeTarget {
  std::string name;
  io::TensorRange range;
  std::function<void(const Tensor& values, std::int64_t begin)> store;
  /// Which of the range's elements: `count` from this one on; -1: all of them.
  std::int64_t first = 0, count = -1;

  std::int64_t elements() const { return count < 0 ? range.elements() : count; }
};

/// The same of parts of tensors, of which nothing else is read (TensorSet::read); the tensors must
/// be those of the targets here too, and of the ranges' shapes. Of their values 4 MiB are in
/// memory at a time, and as many of f32.
void load_ranges(const io::TensorSet& set, const std::vector<RangeTarget>& targets);

/// Which part of the tensor of its name a parameter is, or is a stretch of: where its placement
/// says.
io::TensorRange held_range(const nn::Parameter& parameter);
/// A parameter's value, that part, as such a target.
RangeTarget range_target(nn::Parameter& parameter);

/// Hands the tensors to the parameters of their names; throws as load_tensors() does.
void load_parameters(const io::TensorSet& set, const nn::ParameterList& parameters);

/// A parameter's value as a target.
TensorTarget value_target(nn::Parameter& parameter);

/// Of "F32", "F16" or "BF16", one of which it must be.
DType float_type(std::string_view dtype);
/// F32, F16, BF16 or blocks (base/block_format.h) as f32. Borrows the data where they are f32
/// already.
Tensor read_floats(const io::TensorView& from);
/// A tensor of blocks, borrowed, as a matrix of its last dimension by all others; on Device::meta
/// one that may not be read.
ops::BlockRows stored_blocks(const io::TensorView& from, Device device = Device::cpu);

}  // namespace vfm::models
