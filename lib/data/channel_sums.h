// Mean and standard deviation of each channel of latents, from sums over samples.
// Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::data {

/// Sums over the latent pixels of samples, for the mean and standard deviation of each channel.
/// Sums are added in a fixed order, so that the rounding is the same in every run.
struct ChannelSums {
  std::vector<double> sum, squares;
  double count = 0;  ///< latent pixels

  /// Returns the sums of a latent (C, anything).
  static ChannelSums of(std::span<const float> latent, int channels);
  void add(const ChannelSums& other);
  Json to_json() const;
  /// Throws Error unless the sums are of `channels` channels.
  static ChannelSums from_json(const Json& json, int channels);
};

/// Returns the mean and standard deviation of each channel: {"mean":[...],"std":[...]}. A channel
/// that does not vary (time details, if all are images) has standard deviation 1.
Json channel_statistics(const ChannelSums& sums);

}  // namespace vfm::data
