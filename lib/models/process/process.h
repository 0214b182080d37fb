// The diffusion process of a model: EDM or flow matching. Training and generation both take it from
// here, so that the two cannot drift apart.
//
// x0 is a clean latent in *model units* (models/process/latent_scale.h), e is noise of unit
// variance, F is the output of the network. At each noise level
//
//   x = keep x0 + noise e                        the noisy latent
//   F(in x, time, text)                          the network's inputs
//   D = skip x + out F                           the estimate of x0
//   target = (x0 - skip x) / out                 the F whose estimate is x0
//   loss = weight (D - x0)^2 = (F - target)^2    weight = 1 / out^2
//
// Measured in F, every noise level weighs the same in the loss. The two processes are
//
//            EDM                                     flow matching
//   level    sigma                                   t, at most 1
//   keep     1                                       1 - t
//   noise    sigma                                   t
//   in       1 / sqrt(sigma^2 + sd^2)                1
//   time     ln(sigma) / 4                           1000 t
//   skip     sd^2 / (sigma^2 + sd^2)                 1
//   out      sigma sd / sqrt(sigma^2 + sd^2)         -t
//   target   in (sigma / sd x0 - sd e)               e - x0
//   sd       deviation of x0: kSigmaData             1
//
// The ratio sigma = noise / keep is the scale that both share: t = sigma / (1 + sigma), and x of
// flow matching is x of EDM / (1 + sigma). Samplers step on the level itself, for in both processes
// dx/dlevel = (x - D) / level. All is double: skip and out cancel badly in float at large sigma.
// Sources: Karras et al. 2022, "Elucidating the Design Space of Diffusion-Based Generative Models",
// table 1, with sd as there and in Cosmos; Liu et al. 2022, "Flow Straight and Fast"; Esser et al.
// 2024, "Scaling Rectified Flow Transformers", for the shift.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace vfm::models {

/// Root mean square of the channels' standard deviations in x0 of EDM, in model units.
inline constexpr double kSigmaData = 0.5;
/// The highest noise level of EDM.
inline constexpr double kLargestSigma = 1e6;

/// The process at one noise level, with the names from above.
struct ProcessLevel {
  double keep = 1, noise = 0;
  double in = 1, time = 0;
  double skip = 1, out = 0;
  /// target = of_x0 x0 - of_noise e. Written so, it has none of the cancellation of (x0 - skip x) /
  /// out at small and large sigma.
  double of_x0 = 0, of_noise = 0;

  double target(double x0, double e) const { return of_x0 * x0 - of_noise * e; }
  double estimate(double x, double f) const { return skip * x + out * f; }
  double weight() const { return 1 / (out * out); }
};

class Process {
 public:
  enum Kind : std::uint8_t { edm, flow };
  static constexpr std::array<std::string_view, 2> kNames = {"edm", "flow"};
  constexpr Process(Kind kind = edm) : kind_(kind) {}
  bool operator==(const Process&) const = default;
  constexpr Kind kind() const { return kind_; }
  std::string_view name() const { return kNames[kind_]; }

  /// Returns the process at a level above 0. At 0 the time of EDM is infinite; the other numbers
  /// hold.
  ProcessLevel at(double level) const;
  double highest() const { return kind_ == flow ? 1 : kLargestSigma; }
  /// The standard deviation of x0 in model units.
  double data_deviation() const { return kind_ == flow ? 1 : kSigmaData; }

  double sigma_of(double level) const { return kind_ == flow ? level / (1 - level) : level; }
  double level_of(double sigma) const { return kind_ == flow ? sigma / (1 + sigma) : sigma; }
  /// Returns the level whose sigma is `shift` times that of `level`.
  double shifted(double level, double shift) const;
  /// Training draws levels with ln sigma ~ N(mean, std^2). Returns the level below which a share
  /// `u` of these levels lies, 0 < u < 1.
  double quantile(double u, double mean, double std) const;

 private:
  Kind kind_;
};
/// Parses "edm" or "flow". Throws Error{usage} for anything else.
Process parse_process(std::string_view name);

}  // namespace vfm::models
