// Weak scaling, simulated: a layout on more and more nodes, with as much work for each GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::bench {

/// Prints a table: what the planner's layout for 8 nodes comes to on 8, 32 and 1,024, where packs
/// are unequally full and some nodes are slow, as drawn from a fixed seed. Nothing is measured.
void simulate_scaling(const std::string& recipes);

}  // namespace vfm::bench
