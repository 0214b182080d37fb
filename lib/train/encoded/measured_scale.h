// Mean and deviation of latents that are not on disk, measured of some of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "dist/world.h"
#include "models/dit/edm.h"

namespace vfm::train {

/// Samples that say enough of all.
inline constexpr std::size_t kMeasured = 1024;

/// Of up to kMeasured of `size` samples, evenly spread: latent_of(i) has `channels` channels, and
/// is called on up to `threads` threads at once; what throws Error is left out. The ranks share the
/// samples, and all get the same scale, whose bits do not depend on their number. As vfm-pack does,
/// the values are rounded to halves first. Throws Error where no sample can be read. A collective.
models::LatentScale measure_scale(
    dist::World& world, int channels, std::size_t size, int threads,
    const std::function<std::vector<float>(std::size_t i)>& latent_of);

}  // namespace vfm::train
