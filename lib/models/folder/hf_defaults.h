// Default values of fields that are missing in a config.json. transformers writes only what differs
// from the defaults of a type, and published folders leave out more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/json_fwd.h"

namespace vfm::models {

/// Returns `config` with the defaults of `type` for missing fields (null counts as a value), and
/// with fields that follow from others: for the T5 family is_gated_act and dense_act_fn. Changes
/// AutoencoderKLCosmos, AutoencoderKLWan, t5, umt5 and the classes of architectures that other
/// programs know (Architecture::foreign). Source: the constructors of diffusers 0.42 and of the
/// configurations of transformers 5.23.
Json with_defaults(std::string_view type, Json config);

}  // namespace vfm::models
