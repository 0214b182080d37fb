// What the record of a clip says of how its latent was made, and whether another model made it.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"
#include "generate/generator.h"
#include "generate/prompts.h"

namespace vfm::generate {

/// What clips are made with, apart from their orders.
struct ModelInUse {
  const generate::Generator& generator;
  std::string hash;
  models::Fp8Parts fp8;
  Device device = Device::cpu;
};

/// All that decides the latent of an order that lacks nothing: its hash is the latent's address.
Json describe_latent(const ModelInUse& in_use, const ClipOrder& order);

/// A record of the manifest orders the clip that it describes: with other weights, or computed in
/// another way, it would be another one. Throws Error for one that was made so.
void refuse_other_model(const ModelInUse& in_use, const ClipOrder& order);

}  // namespace vfm::generate
