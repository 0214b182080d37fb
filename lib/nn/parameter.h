// A trainable tensor and its gradient, under a global name.
//
// Names and shapes are those of diffusers, so that a checkpoint needs no conversion. The model
// makes all tensors, and they stay at their address: write into them, never replace them. (The
// queries, keys and values of a layer lie one after another and form one matrix.) On many ranks a
// parameter may be a part of the whole parameter of its name (nn/placement.h).
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

/// The value is one f32 tensor. If the network computes in bf16, it is a split master
/// (ops/optim/split_master.h) instead, and the network computes with its high half.
struct Parameter {
  std::string name;
  Tensor value;  ///< f32; undefined if the value is split
  /// `high` is bf16, `low` i16; undefined if not split. Without training there is only `high`.
  Tensor high, low;
  Tensor grad;  ///< f32, same shape; starts at zero, backward adds to it; undefined: not trained
  Placement placement;  ///< where value, or high and low, lie in the whole parameter
  bool decay = true;    ///< whether weight decay applies (not for norms and position tables)
  bool hidden = false;  ///< a matrix of a block that multiplies tokens: not a table, and no head
  /// In a pipeline: every stage has this parameter and uses it. Otherwise stages that do not use it
  /// have no elements of it.
  bool on_all_stages = false;
  /// For ranks that have the same weights and share their state: this rank's stretch [n] as a
  /// parameter, which has the moments and average. Its value or high and its gradient are views
  /// into this parameter. If the value is split, only the stretch has the low half. Null: this rank
  /// has the whole state.
  std::shared_ptr<Parameter> state = {};
  /// The number of elements of the weight in which this parameter is stacked (nn/weight.h), and of
  /// the parameters before this one in it.
  std::int64_t stack = 0, before = 0;
  /// This rank keeps no more of the parameter than the state (nn/block_shards.h). Then value or
  /// high is a name without elements in memory, and grad is undefined.
  bool sharded = false;

  bool split() const { return high.defined(); }
  /// Returns whether this rank has any elements of it.
  bool here() const { return elements() > 0; }
  /// Returns whether this is the whole parameter, not a part.
  bool whole() const { return placement.part.empty() && shape() == placement.global; }
  const Shape& shape() const { return (split() ? high : value).shape(); }
  std::int64_t elements() const { return (split() ? high : value).elements(); }
  Device device() const { return (split() ? high : value).device(); }
  /// The value as f32 on device(): the tensor itself if it is not split, else a copy.
  Tensor read() const;
  /// Sets the value from `values`, f32 with the same number of elements, on any device.
  void write(const Tensor& values) const;
  /// The same for the elements [begin, end) in C order, as [end - begin], and for the elements from
  /// `begin` on that `values` has.
  Tensor read(std::int64_t begin, std::int64_t end) const;
  void write(const Tensor& values, std::int64_t begin) const;
  /// These elements as they lie: the value, or the halves of a split master.
  std::vector<Tensor> view(std::int64_t begin, std::int64_t end) const;
};

/// The input of AdamW for a trained parameter. The caller sets moments, average and weight decay.
ops::AdamwSlot adamw_slot(const Parameter& parameter);

using ParameterList = std::vector<Parameter*>;

/// The stretch of a parameter whose state rank `rank` of `ranks` keeps. The stretches of a whole
/// weight differ by at most one element.
Stretch state_stretch(const Parameter& parameter, int rank, int ranks);
/// The state of each parameter, or the parameter itself if it has none.
ParameterList states_of(const ParameterList& parameters);

/// Total number of elements on this rank.
std::int64_t element_count(const ParameterList& parameters);

/// Sets all gradients that exist on this rank to zero.
void zero_gradients(const ParameterList& parameters);

}  // namespace vfm::nn
