// What every backend must do, threads and MPI: each collective of one group against what the ranks'
// values say it must be. Not Catch2, as the ranks are threads or processes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dist/group.h"
#include "dist/traffic.h"

namespace group_cases {

/// Throws vfm::Error naming what is wrong. Every rank of the group calls it.
void check_operations(vfm::dist::Group& group);
/// Calls each operation once and compares what this rank is said to have sent with the formulas.
void check_traffic(vfm::dist::Group& group, const vfm::dist::Traffic& traffic);
/// Messages and sums of more than one piece.
void check_large(vfm::dist::Group& group);

}  // namespace group_cases
