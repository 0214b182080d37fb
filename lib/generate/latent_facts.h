// What in a record decides a latent: the prompt, how it was sampled, the model and the files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"

namespace vfm::generate {

/// The facts of `record` that decide its latent, in the order in which the latent's address hashes
/// them. Pure.
Json latent_facts(const Json& record);

}  // namespace vfm::generate
