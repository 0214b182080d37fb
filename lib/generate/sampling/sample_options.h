// How a clip is sampled: noise levels and sampler (models/process/sampler.h), guidance, and how
// codes are drawn.
// Thread-safety: values and free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/folder/model_facts.h"
#include "models/process/sampler.h"

namespace vfm::generate {

/// The largest guidance, up or down: far beyond what any model is sampled with.
inline constexpr double kMostGuidance = 1000;

/// How to sample. Every number is part of the result.
struct SampleOptions : models::NoiseSchedule {
  /// D = c + guidance * (c - u): c the estimate with the prompt, u with the negative prompt. 0:
  /// without guidance. Many programs write u + w (c - u); their w is guidance + 1.
  double guidance = 1;
  /// The same of the second of two networks, for low noise levels; none: `guidance`.
  std::optional<double> guidance_low;
  /// The steps, guidance and shift in diffusers, of a model that its authors' program samples
  /// otherwise. `as` chooses between the two: these, the kind of noise levels, and whether the
  /// embedding of the noise level is rounded.
  std::optional<models::InDiffusers> diffusers;
  double augment_sigma = 0.001;  ///< noise on the condition frames of video to world
  /// For autoregressive models, which ignore the others: generate/sampling/codes.h.
  double temperature = 1, top_p = 0.9;

  /// Returns whether the network rounds the embedded noise level (NetworkBatch::round_embedding).
  bool rounds_embedding() const { return diffusers && as == models::SampledAs::diffusers; }
  double guidance_of(int network) const {
    return network == 1 ? guidance_low.value_or(guidance) : guidance;
  }
  /// Returns whether any network is guided.
  bool guides() const { return guidance_of(0) != 0 || guidance_of(1) != 0; }

  /// Throws Error{usage} naming what is out of range.
  void validate() const;
  /// Returns the default sampling of a model. Missing facts have the defaults above. Throws Error,
  /// naming `what`, for values out of range.
  static SampleOptions of(const models::SamplingFacts& facts, const std::string& what);
};

/// Returns the number of the network for a noise level, of two networks: the second one is for
/// levels below `boundary`. Levels are compared as float, for some samplers round them.
int network_of(double level, double boundary);
/// Returns how many of the sampling's steps ask only the first of two networks. The last step does
/// not count.
int first_network_steps(const SampleOptions& options, double boundary);

/// Parses numbers separated by commas, such as "1,0.9375,0.8333". Throws Error{usage}.
std::vector<double> parse_sigmas(std::string_view text);

/// Called with the number of steps or codes of a clip that are done, and the total.
using HowFar = std::function<void(std::int64_t done, std::int64_t total)>;

}  // namespace vfm::generate
