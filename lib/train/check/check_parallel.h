// Checks that a layout trains the same as one rank (vfm-train check). Compared are the loss, the
// gradients and the update of the first step; losses, norms and updates of three more steps; and a
// validation. Rank 0 makes these steps alone, then all ranks make them together
// (train/check/check_steps.h). One parameter is compared after the other.
//
// Weights begin as in a run, except parameters that are all zeros. These would make the gradients
// of others zero, so they are drawn with a deviation of 0.02, the same on every layout. A gradient
// that is zero both times proves nothing and is a fault, unless the step's data leave it none. In
// bf16, rounding alone makes a difference: the layout may differ from one rank by twice the
// difference between bf16 and f32 on one rank. In f32 rounding decides many digits of a gradient
// whose terms nearly cancel. An example is the bias of keys that are nearly alike: softmax does not
// see what all keys have in common. So rank 0 makes the first step once more, with weights whose
// last bits are others, and a gradient may differ by four times what that changes. A gradient that
// rounding decides altogether is told as such. All ranks that hold an element of a parameter must
// have the same bits of its gradient and, after the updates, of its weight. Writes nothing.
// Thread-safety: one thread; every rank of the world calls it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "dist/world.h"
#include "train/check/compared_value.h"
#include "train/data/dataset.h"
#include "train/run.h"

namespace vfm::train {

class Trainer;
/// Called between steps by tests.
using AfterStep = std::function<void(Trainer&)>;

struct ParallelCheck {
  std::string layout, compute;        ///< "tp=2 cp=2 dp=1 pp=1"; 'model.compute'
  double one_rank_bytes = 0;  ///< memory that rank 0 needs for the whole model and its steps
  bool passed = false;                ///< the same on all ranks
  std::vector<ComparedValue> values;  ///< on rank 0: faults first, then by difference over limit

  /// to_json() has the keys of vfm-train-check(1); words() is a table.
  Json to_json() const;
  std::string words() const;
};

/// Checks the layout of a run with these options; `out` is not used. Without options.init, frozen
/// weights under adapters are drawn at random. Throws Error{usage} for what a run refuses, and if
/// rank 0 has not enough memory for the whole model. `after` is called after each step of all
/// ranks; tests use it to introduce faults. A collective.
ParallelCheck check_parallel(const RunOptions& options, const Dataset& data, dist::World& world,
                             const AfterStep& after = {});

}  // namespace vfm::train
