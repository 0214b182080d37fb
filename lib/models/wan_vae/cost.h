// The cost of Wan's video autoencoder (models/wan_vae/tokenizer.h), found by running its network on
// Device::meta (tensor/meta.h), and bands of rows that a limit of memory allows. Thread-safety:
// free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "models/part_cost.h"
#include "models/wan_vae/config.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// Encoding or decoding a latent of frames x height x width.
struct WanVaeWork {
  bool encodes = true;
  std::int64_t frames = 1, height = 1, width = 1;
  int bands = 1;  ///< bands of rows of ranks that decode together, wan_vae_bands()
};

/// The number of ranks that have a band when so many decode a latent of that height together.
int wan_vae_bands(std::int64_t height, int ranks);

/// The cost of one rank, that with the largest band. Parameters are counted for encoder and
/// decoder.
PartCost wan_vae_cost(const WanVaeConfig& config, const WanVaeWork& work, std::int64_t band_pixels,
                      Device device, DType compute);

/// The pixels of a band (models/wan_vae/autoencoder.h) with which `work` takes at most `memory`
/// bytes of activations; 0: no limit. Throws Error{usage} that names the least memory needed if
/// there are none.
std::int64_t wan_vae_band(const WanVaeConfig& config, const WanVaeWork& work, double memory,
                          Device device, DType compute);

}  // namespace vfm::models
