// The configuration of the autoregressive decoder as a config.json. Apart from the model, so that
// the model needs no JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "models/decoder/decoder.h"

namespace vfm::models {

/// "_class_name" of its config.json.
inline constexpr const char* kDecoderClass = "AutoregressiveTransformer3DModel";

Json decoder_config_to_json(const DecoderConfig& config);

/// Keys that are absent have the defaults. Throws Error{usage} for values that are no
/// configuration.
DecoderConfig decoder_config_from_json(const Json& config);

}  // namespace vfm::models
