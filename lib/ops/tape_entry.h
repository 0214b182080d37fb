// For ops/tape.h alone: what a tape knows of a tensor, and a step of backward.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::ops {

class Tape;

/// What an op or a block made, or what arrived.
using TapeResults = std::shared_ptr<std::vector<Tensor>>;

struct TapeNode {
  TapeResults results;  // null: it always runs
  std::function<void(Tape&)> backward;
};

struct TapeEntry {
  Tensor tensor;    // keeps the memory, and so the name, alive
  Tensor gradient;  // watched: the caller's buffer
  bool watched = false;
  bool stale = false;      // watched: what is in the buffer does not count
  bool told = false;       // watched: the listener was
  TapeResults block = {};  // of a block, or arrived: what else holds the tensor
};

}  // namespace vfm::ops
