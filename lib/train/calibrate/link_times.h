// What ranks of one launch send each other, and how long it takes.
// Thread-safety: one thread; every rank of the world calls it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/held_json.h"
#include "dist/world.h"
#include "models/gpu_table.h"

namespace vfm::train {

struct LinkTimes {
  models::Link link;  ///< of one rank alone what never counts
  HeldJson measured;  ///< [{"operation", "bytes", "seconds"}, ...], bytes that a rank sends
};

/// A collective: messages of several sizes, by each of the operations of a step, of tensors on that
/// device: of GPUs as World::use_device() has them go.
LinkTimes measure_links(dist::World& world, Device device);

}  // namespace vfm::train
