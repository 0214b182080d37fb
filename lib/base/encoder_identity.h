// The identity of the encoder that made vectors, from the configuration stored beside them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"

namespace vfm {

/// The identity of a configuration's encoder, wherever its folder lies: equal for two encoders that
/// make the same embeddings. Without a hash, the path decides. `config` may have unknown keys of
/// other programs. Pure.
Json encoder_identity(Json config);

}  // namespace vfm
