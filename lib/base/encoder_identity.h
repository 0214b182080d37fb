// Who made vectors: an encoder's configuration, as it stands beside what it made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"

namespace vfm {

/// What the encoder of a configuration is, wherever its folder lies: equal for two if they make the
/// same embeddings. Without a hash, its path decides. As it came: another program's may have keys
/// that are not known here. Pure.
Json encoder_identity(Json config);

}  // namespace vfm
