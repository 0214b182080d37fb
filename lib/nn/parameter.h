// A trainable tensor and its gradient, under a global name.
//
// Names and shapes are diffusers', so that a checkpoint needs no conversion. All tensors are made
// by the model and stay where they are: write into them, never replace them (queries, keys and
// values of a layer lie one after the other, to be one matrix). On many ranks a parameter may be a
// part of the one that its name means (nn/placement.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/placement.h"
#include "ops/optim/adamw.h"
#include "tensor/tensor.h"

namespace vfm::nn {

/// The value is one f32 tensor; or, where the network computes in bf16, a split master
/// (ops/optim/split_master.h), of which it computes with the high half.
struct Parameter {
  std::string name;
  Tensor value;      ///< f32, or undefined: it is split
  Tensor high, low;  ///< bf16 and i16, or undefined; without training high alone
  Tensor grad;       ///< f32, same shape, zero at first; summed by backward; undefined: not trained
  Placement placement;  ///< of value, or high and low, in the whole parameter
  bool decay = true;    ///< whether weight decay applies (not for norms and position tables)
  /// Of a pipeline: whether each of its stages has it and uses it. Of any other parameter the
  /// stages that do not use it have no element.
  bool on_all_stages = false;
  /// Where ranks that have the same weights share their state: this rank's stretch as a parameter
  /// by itself, [n], of which there are moments and an average. Its value, or high, and its
  /// gradient are views of these here; of what is split it alone has the low half. Null: the state
  /// of all of it is here.
  std::shared_ptr<Parameter> state = {};
  /// Of the weight that it is stacked in with others (nn/weight.h): its elements, and those before
  /// it.
  std::int64_t stack = 0, before = 0;
  /// Whether a rank has no more of it than the state (nn/block_shards.h): then value, or high, is a
  /// name, and grad undefined.
  bool sharded = false;

  bool split() const { return high.defined(); }
  /// Whether this rank has any of it.
  bool here() const { return elements() > 0; }
  /// Whether it is the whole one.
  bool whole() const { return placement.part.empty() && shape() == placement.global; }
  const Shape& shape() const { return (split() ? high : value).shape(); }
  std::int64_t elements() const { return (split() ? high : value).elements(); }
  Device device() const { return (split() ? high : value).device(); }
  /// The value as f32, on device(): the tensor itself if it is not split, else a copy.
  Tensor read() const;
  /// Sets the value; `values` is f32, of the same number of elements, on any device.
  void write(const Tensor& values) const;
  /// The elements [begin, end) alone, in C order, [end - begin]; and from `begin` on those of
  /// `values`.
  Tensor read(std::int64_t begin, std::int64_t end) const;
  void write(const Tensor& values, std::int64_t begin) const;
};

/// What AdamW needs of a trained parameter; moments, average and weight decay are for the caller.
ops::AdamwSlot adamw_slot(const Parameter& parameter);

using ParameterList = std::vector<Parameter*>;

/// What rank `rank` of `ranks` has the state of: of a weight all ranks have as much, but for one
/// element.
Stretch state_stretch(const Parameter& parameter, int rank, int ranks);
/// Of each its state, or the parameter itself.
ParameterList states_of(const ParameterList& parameters);

/// The sum of their elements.
std::int64_t element_count(const ParameterList& parameters);

/// Sets all gradients to zero that are here.
void zero_gradients(const ParameterList& parameters);

}  // namespace vfm::nn
