// Converts the configuration of the autoregressive decoder to and from config.json. In a header of
// its own, so that the decoder needs no JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "models/decoder/decoder.h"

namespace vfm::models {

/// The "_class_name" in config.json.
inline constexpr const char* kDecoderClass = "AutoregressiveTransformer3DModel";

/// Texts of the published decoders are padded to this number of tokens with zero vectors.
inline constexpr int kDecoderTextTokens = 512;

Json decoder_config_to_json(const DecoderConfig& config);

/// Absent keys get the defaults. Throws Error{usage} for invalid values.
DecoderConfig decoder_config_from_json(const Json& config);

}  // namespace vfm::models
