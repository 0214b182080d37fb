// The time of messages between the ranks of one launch. Thread-safety: one thread; every rank of
// the world calls it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/held_json.h"
#include "dist/world.h"
#include "models/gpu_table.h"

namespace vfm::train {

struct LinkTimes {
  models::Link link;  ///< for a single rank a link that takes no time
  HeldJson measured;  ///< [{"operation", "bytes", "seconds"}, ...]; bytes that a rank sends
};

/// Times messages of several sizes by each operation of a step, with tensors on this device. For
/// GPUs after World::use_device(). A collective.
LinkTimes measure_links(dist::World& world, Device device);

}  // namespace vfm::train
