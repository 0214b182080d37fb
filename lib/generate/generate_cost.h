// What vfm-generate --dry-run reports: what a clip costs to make, and whether the files of the
// model fit. Configurations and headers are read, no weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "generate/generate.h"

namespace vfm::generate {

/// Of the clip of job.defaults, with the keys that vfm-generate(1) documents. Estimates:
/// models/part_cost.h says what is counted. Throws Error{usage} for a folder that cannot generate:
/// all tensors of all parts that are missing, left over, misshapen or not of a float type, and
/// files that are cut off, in one message.
Json generation_cost(const GenerateJob& job);

/// The same in words, lines "name   value".
std::string generation_words(const Json& cost);

}  // namespace vfm::generate
