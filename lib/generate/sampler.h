// Samplers: from noise to a clean latent along the probability-flow equation dx/dsigma = (x -
// D)/sigma.
//
// The state is double throughout: at sigma 80 a float keeps fewer digits than the last steps need.
// No noise is added on the way (S_churn = 0), so a clip is a function of its first noise. Source:
// Karras et al. 2022, equation 5 and algorithm 1. Public code has a Heun that asks for the estimate
// at the old point a second time and so is Euler at twice the cost; the test of the order of
// convergence keeps that out.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::generate {

enum class Sampler {
  euler,  ///< one estimate a step, first order
  heun,   ///< two a step but the last, second order
};
/// Throws Error{usage} with the names there are.
Sampler parse_sampler(std::string_view name);
std::string to_string(Sampler sampler);

/// Noise levels in the way down, steps + 1 values: from sigma_max to sigma_min, evenly spaced in
/// sigma^(1/rho), then 0. One step goes from sigma_max to 0. Throws Error{usage} unless steps >= 1
/// and 0 < sigma_min < sigma_max.
std::vector<double> karras_sigmas(int steps, double sigma_min, double sigma_max, double rho = 7);

/// Writes the estimate of the clean latent for `x` at noise level `sigma` to `x0` (same size).
using Denoise = std::function<void(std::span<const double> x, double sigma, std::span<double> x0)>;

/// Moves `x`, a state at sigmas.front() (noise of that standard deviation), down the sigmas. The
/// last may be 0, where the state becomes the estimate itself.
void sample(Sampler sampler, std::span<const double> sigmas, const Denoise& denoise,
            std::span<double> x);

/// How often sample() asks for an estimate.
int evaluations(Sampler sampler, int steps);

}  // namespace vfm::generate
