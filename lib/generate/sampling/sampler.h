// Samplers: from noise to a clean latent along the probability-flow equation dx/dsigma = (x -
// D)/sigma; or, for students distilled to few steps, from estimate to estimate.
//
// The state is double throughout: at sigma 80 a float keeps fewer digits than the last steps need.
// No noise is added on the way (S_churn = 0), except by lcm, whose noise follows from seed, prompt
// and step. So a clip is a function of its first noise, seed and prompt, and sampling can be
// stopped and resumed after any step. Sources: Karras et al. 2022, equation 5 and
// algorithm 1 (Euler, Heun); Zhang et al. 2023, "Improved order analysis and design of exponential
// integrator for diffusion models sampling" (RES, the two-step method); Liu et al. 2022 (flow
// matching); Song et al. 2023, "Consistency models", algorithm 1, and Luo et al. 2023, "Latent
// consistency models" (lcm; students of Yin et al. 2024, "Improved distribution matching
// distillation", are sampled so too). Some public code has a Heun that takes the second estimate at
// the old point, and so is Euler at twice the cost; a test prevents that.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::models {
struct SamplingFacts;
}

namespace vfm::generate {

enum class Sampler {
  euler,      ///< one estimate a step, first order; ends with the estimate at sigma_min. diffusers'
              ///< EDMEulerScheduler with final_sigmas_type "zero"
  edm_euler,  ///< the same, but ends with the state at sigma_min, one estimate less: that
              ///< scheduler with "sigma_min", whose last step moves nothing
  heun,       ///< two a step except the last, second order
  res,        ///< one a step and one for the result, second order: keeps the estimate before
  flow,       ///< Euler over the noise levels of flow matching; for models trained so
  lcm,        ///< one a step: the estimate, with fresh noise of the next level; for distilled
              ///< models, of flow matching or not
};
/// "euler", "edm-euler", "heun", "res", "flow", "lcm". Throws Error{usage} listing the names.
Sampler parse_sampler(std::string_view name);
std::string to_string(Sampler sampler);
/// Throws Error{usage} if `asked` is not for a model whose own sampler is `own`: models of flow
/// matching have only their own and lcm.
void check_sampler(Sampler asked, Sampler own);

inline constexpr int kMostSteps = 10000;
inline constexpr double kLargestSigma = 1e6;

/// How to sample. Every number is part of the result.
struct SampleOptions {
  Sampler sampler = Sampler::euler;
  int steps = 16;
  double sigma_min = 0.02, sigma_max = 40;  ///< not of flow
  double shift = 1;                         ///< of flow: above 1 more steps at high noise
  /// The noise levels themselves, instead of `steps` and those three; empty: from these.
  std::vector<double> sigmas = {};
  bool of_flow = false;  ///< lcm: the model is of flow matching
  /// D = c + guidance * (c - u): c the estimate with the prompt, u with the negative prompt. 0 is
  /// no guidance. Many programs write u + w (c - u); their w is guidance + 1.
  double guidance = 1;
  double augment_sigma = 0.001;  ///< noise on the condition frames of video to world
  /// For autoregressive models, which ignore the others: generate/sampling/codes.h.
  double temperature = 1, top_p = 0.9;
  /// True for flow matching: x = (1 - sigma) x0 + sigma noise, sigma up to 1. Else x = x0 + sigma
  /// noise.
  bool flow() const { return sampler == Sampler::flow || of_flow; }
  /// Throws Error{usage} naming what is out of range.
  void validate() const;
  /// The sampling of a model: missing facts are as above. Throws Error, naming `what`, for values
  /// out of range.
  static SampleOptions of(const models::SamplingFacts& facts, const std::string& what);
};

/// n noise levels from sigma_max to sigma_min, evenly spaced in sigma^(1/rho); one alone is
/// sigma_max. Throws Error{usage} unless n >= 1 and 0 < sigma_min < sigma_max.
std::vector<double> karras_sigmas(int n, double sigma_min, double sigma_max, double rho = 7);

/// "1,0.9375,0.8333": numbers, divided by commas. Throws Error{usage}.
std::vector<double> parse_sigmas(std::string_view text);

/// The noise levels of a sampling, falling: a step leads from each to the next. The last is 0,
/// where the state becomes the estimate itself, or (edm_euler) sigma_min twice. Above zero are the
/// given levels, or else `steps` levels. RES has one more: its result is an estimate at sigma_min
/// too, but not counted as a step. Levels of flow: s = shift u / (1 + (shift - 1) u) for u twice
/// shifted from 1 to 1/1000, as diffusers' FlowMatchEulerDiscreteScheduler does.
std::vector<double> noise_levels(const SampleOptions& options);

/// Writes the estimate of the clean latent for `x` at noise level `sigma` to `x0` (same size).
using Denoise = std::function<void(std::span<const double> x, double sigma, std::span<double> x0)>;

/// The state of a sampling: all that is needed to resume it.
struct SamplerState {
  int step = 0;                  ///< steps done
  std::vector<double> x;         ///< at sigmas[step]; at first noise of that standard deviation
  std::vector<double> previous;  ///< RES: the estimate of the step before; empty at first
};

/// Writes the estimate `x0` with fresh noise to `x` (same size), at noise level `sigma`, after
/// `step` steps.
using Renoise =
    std::function<void(std::span<const double> x0, double sigma, int step, std::span<double> x)>;
/// The noise is that of (seed, sampler_noise, step, key): step 0 would be the first noise.
Renoise fresh_noise(bool flow, std::uint64_t seed, std::uint64_t key);

/// Moves the state from sigmas[state.step] to the next level. Asks for no estimate where both are
/// equal. `renoise` is for lcm, and no other.
void sample_step(Sampler sampler, std::span<const double> sigmas, const Denoise& denoise,
                 SamplerState& state, const Renoise& renoise = {});

/// Called with the state after a step.
using AfterStep = std::function<void(const SamplerState& state)>;

/// Called with the number of steps or codes of a clip that are done, and the total.
using HowFar = std::function<void(std::int64_t done, std::int64_t total)>;

/// Does all remaining steps. `after_step` is called after each except the last.
void sample(Sampler sampler, std::span<const double> sigmas, const Denoise& denoise,
            SamplerState& state, const AfterStep& after_step = {}, const Renoise& renoise = {});

/// The number of estimates in a whole sampling.
int evaluations(const SampleOptions& options);

}  // namespace vfm::generate
