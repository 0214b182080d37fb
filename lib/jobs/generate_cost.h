// What vfm-generate --dry-run prints: what a clip costs to make. No weights are read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "jobs/generate.h"

namespace vfm::jobs {

/// Lines "name   value": the model and its parts, the clip of job.defaults, estimates asked of the
/// network, FLOPs of sampling, and memory. FLOPs are those of the matrices and of attention; memory
/// is that of the weights as they are computed with, and about that of one clip. Throws
/// Error{usage} for a folder that cannot generate, naming what is missing or which types work.
std::string describe_generation(const GenerateJob& job);

}  // namespace vfm::jobs
