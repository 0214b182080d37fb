// Names of adapters' tensors in the files of different programs and versions:
//
//   MODULE.lora_A.weight, MODULE.lora_B.weight             peft, diffusers today
//   MODULE.lora_A.default.weight                           peft, with the adapter's own name
//   MODULE.lora_down.weight, MODULE.lora_up.weight         kohya; MODULE.alpha with them
//   lora_transformer_MODULE_WITH_UNDERSCORES.lora_down.weight      kohya, too
//   MODULE.lora.down.weight, MODULE.processor.to_q_lora.down.weight    diffusers before peft
// MODULE may have a prefix: base_model.model., transformer., diffusion_model. or unet. It may have
// the names of any form that an architecture lists (models/dit/foreign.h).
// Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm::models {

/// Prefix of the names for the second of two networks that are chosen by noise level.
inline constexpr std::string_view kSecondLoraPrefix = "transformer_2.";

enum class AdapterPart { a, b, alpha, other };

struct AdapterName {
  std::string module;  ///< name used here: "transformer_blocks.0.attn1.to_q"
  AdapterPart part = AdapterPart::other;
};

/// Parses a tensor's name. For `other` the module is the name without its prefix. Pure.
AdapterName parse_adapter_name(std::string_view name);

}  // namespace vfm::models
