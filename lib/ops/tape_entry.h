// For ops/tape.h alone: a tensor that a tape knows, and a step of the backward pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::ops {

class Tape;

/// Results of an op or a block, or a tensor given to Tape::arrive().
using TapeResults = std::shared_ptr<std::vector<Tensor>>;

struct TapeNode {
  TapeResults results;  // null: the step always runs
  std::function<void(Tape&)> backward;
};

struct TapeEntry {
  Tensor tensor;    // keeps the memory alive
  Tensor gradient;  // if watched, the caller's buffer
  bool watched = false;
  bool stale = false;      // watched: the buffer has no value yet
  bool told = false;       // watched: the listener was called
  TapeResults block = {};  // of a block or arrive(): what else holds the tensor
};

}  // namespace vfm::ops
