// The report of vfm-generate cost: a clip's cost, and whether the model's files fit together. Only
// configurations and headers are read, no weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "generate/generate.h"

namespace vfm::generate {

/// The estimated cost of the clip of job.defaults, with the keys that vfm-generate-cost(1)
/// documents. models/part_cost.h explains the counts. Throws Error{usage} for a folder that cannot
/// generate. The message lists all tensors that are missing, left over, of a wrong shape or not of
/// a float type, and all truncated files.
Json generation_cost(const GenerateJob& job);

/// The same as lines of text, "name   value".
std::string generation_words(const Json& cost);

}  // namespace vfm::generate
