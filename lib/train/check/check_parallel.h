// The proof that a layout trains what one rank trains: the loss, the gradients and the update of
// the first step, then losses, norms and updates of three more, and a validation, which rank 0
// makes alone and then all ranks make together (train/check/check_steps.h), compared one parameter
// after the other (vfm-train check).
//
// Weights begin as a run's do, but for parameters that are all zeros: these shut off the gradients
// of others, so they are drawn at 0.02, the same on every layout. A gradient that is zero both
// times proves nothing, and is a fault, unless the step's data leave it none. In bf16 rounding
// alone makes a difference: as much again as from f32, on one rank, is allowed. Also each rank that
// holds an element of a parameter must have the bits of the others for its gradient, and after the
// updates for the weight. Nothing is written. Thread-safety: one thread; every rank of the world
// calls it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "dist/world.h"
#include "train/data/dataset.h"
#include "train/run.h"

namespace vfm::train {

class Trainer;
/// What tests do between steps.
using AfterStep = std::function<void(Trainer&)>;

/// The loss of a step or a validation; the gradient of a parameter; the global norm of these; or
/// what updates changed, in all weights or in their average.
struct ComparedValue {
  std::string name;       ///< the parameter's, or one of train/check/check_alone.h
  double alone = 0;       ///< on one rank: of the loss the mean, of a gradient the L2 norm
  double together = 0;    ///< of all ranks
  double difference = 0;  ///< L2 norm of the difference, over `alone`; or the most of a parameter
  double limit = 0;       ///< of it
  std::string fault;      ///< what is wrong; "": nothing
  std::string most;       ///< of an update: the parameter in which it differs most
  std::string without;    ///< why it may be zero, where the data leave it no gradient

  bool of_parameter = false;  ///< the gradient of the one of that name

  bool good() const { return fault.empty(); }
  std::string title() const { return (of_parameter ? "gradient of " : "") + name; }
};

struct ParallelCheck {
  std::string layout, compute;        ///< "tp=2 cp=2 dp=1 pp=1"; 'model.compute'
  double one_rank_bytes = 0;          ///< of memory, on rank 0: of the whole model and its step
  bool passed = false;                ///< the same on all ranks
  std::vector<ComparedValue> values;  ///< on rank 0: faults first, then by difference over limit

  /// With the keys that vfm-train-check(1) documents; and a table.
  Json to_json() const;
  std::string words() const;
};

/// Of the options it wants those of a run, without `out`. Frozen weights under adapters are drawn,
/// if there is no options.init. Throws Error{usage} for what a run refuses, and if rank 0 has no
/// memory for the whole model. `after` is called after each step of all ranks, by tests that spoil
/// something. A collective.
ParallelCheck check_parallel(const RunOptions& options, const Dataset& data, dist::World& world,
                             const AfterStep& after = {});

}  // namespace vfm::train
