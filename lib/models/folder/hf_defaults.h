// The values of fields that a config.json leaves out: transformers writes only what differs from
// the defaults of a type, and releases trim the rest.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/json_fwd.h"

namespace vfm::models {

/// `config` with the defaults of `type` where it has no such field (null is a value), and with what
/// follows from its fields: for the T5 family is_gated_act and dense_act_fn. Other types than
/// AutoencoderKLCosmos, CosmosTransformer3DModel, t5 and umt5 are left as they are.
/// Source: the constructors of diffusers 0.42 and of the configurations of transformers 5.23.
Json with_defaults(std::string_view type, Json config);

}  // namespace vfm::models
