// What the kernels' accesses cost, against the table that is kept in accesses.txt: so that a change
// which costs bank conflicts or sectors is noticed where there is no GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#ifndef VFM_ACCESSES
#define VFM_ACCESSES "accesses.txt"  // the build tells where it is
#endif

namespace vfm::emulation {

/// Compares what the kernels launched by this program did, since the last call, with the program's
/// rows of the table: a line for each figure that is worse, each kernel that should be in the
/// table, and each row whose kernel did not run. Where the environment's VFM_EMULATION is "write",
/// it writes the rows instead; where it is "places", it prints which lines of source take more than
/// the least.
std::vector<std::string> compare_accesses(const std::string& file = VFM_ACCESSES);

}  // namespace vfm::emulation
