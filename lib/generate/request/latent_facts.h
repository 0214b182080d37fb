// The fields of a record that decide a latent: prompt, sampling, model and files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"

namespace vfm::generate {

/// The fields of `record` that decide its latent, in the order in which they are hashed into the
/// latent's address. Pure.
Json latent_facts(const Json& record);

}  // namespace vfm::generate
