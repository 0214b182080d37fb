// Mean and deviation of latents that are not on disk, measured on a part of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "dist/world.h"
#include "models/process/latent_scale.h"

namespace vfm::train {

/// Number of samples that is enough for the scale.
inline constexpr std::size_t kMeasured = 1024;

/// Measures the scale on up to kMeasured of `size` samples, evenly spread. latent_of(i) returns
/// `channels` channels, and is called on up to `threads` threads at once; samples for which it
/// throws Error are left out. Values are rounded to halves first, as in vfm-pack. The ranks share
/// the samples and all get the same scale, whose bits do not depend on the number of ranks. Throws
/// Error if no sample can be read. A collective.
models::LatentScale measure_scale(
    dist::World& world, int channels, std::size_t size, int threads,
    const std::function<std::vector<float>(std::size_t i)>& latent_of);

}  // namespace vfm::train
