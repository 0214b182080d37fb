// Identifies the encoder that made vectors, from the configuration that is stored with the vectors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"

namespace vfm {

/// Returns the identity of the encoder of `config`. Two encoders that make the same embeddings have
/// the same identity, even in different folders. If `config` has no hash, the path identifies the
/// encoder. `config` may have unknown keys.
Json encoder_identity(Json config);

}  // namespace vfm
