// Weights that stay in the host's memory while they are used, such as those of a large text
// encoder, for ranks on several hosts.
//
// On one host, a mapped file is read once: all processes share what the system keeps of it. But
// each host of a run would read the whole file from the disk that they share. Here some ranks read
// each byte once, the first rank of each host gets all bytes, and the others of its host map its
// memory. That memory has no name, and goes with the last of these processes.
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "dist/world.h"
#include "io/tensor_set.h"

namespace vfm::train {

/// The tensors of `opened`, which all ranks have opened, in such memory. `opened` must outlive the
/// result. Null on all ranks if they are to read `opened` by themselves: if they are on one host,
/// which reads a local file, or if a host has too little memory, which a message says. Throws on
/// all ranks if a rank cannot read. A collective.
std::unique_ptr<io::TensorSet> share_weights(dist::World& world, const io::TensorSet& opened);

}  // namespace vfm::train
