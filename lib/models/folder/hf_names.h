// The names of tensors in other people's files, as diffusers and transformers name them today.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::models {

/// For each name, in order: its name today, or "" for what is no weight of such a model (training
/// counters, tables that are computed, the decoder of a text model).
///
/// - Wrappers' prefixes that all names share are dropped ("module.", "net.", "model.").
/// - CosmosTransformer3DModel: NVIDIA's names of Cosmos-1.0
/// ("blocks.block3.blocks.0.block.attn...").
/// - AutoencoderKLCosmos: those of NVIDIA's tokenizers
/// ("encoder.down.0.block.1.conv1.0.conv3d...");
///   `config` says how many levels they count downwards.
/// - t5, umt5: the embedding is "shared.weight", by whichever of its names it comes.
/// Source: diffusers scripts/convert_cosmos_to_diffusers.py.
std::vector<std::string> names_today(std::string_view type, const Json& config,
                                     const std::vector<std::string>& names);

}  // namespace vfm::models
