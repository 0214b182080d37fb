// Samplers: from noise to a clean latent along dx/dlevel = (x - D)/level
// (models/process/process.h); or, for students distilled to few steps, from estimate to estimate.
//
// The state is double throughout: at sigma 80 a float keeps fewer digits than the last steps need.
// No noise is added on the way (S_churn = 0), except by lcm, whose noise follows from seed, prompt
// and step. So a clip is a function of its first noise, seed and prompt, and sampling can be
// stopped and resumed after any step. Sources: Karras et al. 2022, equation 5 and
// algorithm 1 (Euler, Heun); Zhang et al. 2023, "Improved order analysis and design of exponential
// integrator for diffusion models sampling" (RES, the two-step method); Liu et al. 2022 (flow
// matching); Lu et al. 2022, "DPM-Solver++", algorithm 2 (dpm++); Zhao et al. 2023, "UniPC",
// algorithms 1 and 2 with B(h) = e^h - 1 (unipc); Song et al. 2023, "Consistency models", algorithm
// 1, and Luo et al. 2023, "Latent consistency models" (lcm; students of Yin et al. 2024, "Improved
// distribution matching distillation", are sampled so too). Some public code has a Heun that takes
// the second estimate at the old point, and so is Euler at twice the cost; a test prevents that.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/process/process.h"

namespace vfm::models {

/// A sampler has a row in the table of sampler.cc, which says what differs between them.
enum class Sampler {
  euler,      ///< one estimate a step, first order; ends with the estimate at sigma_min. diffusers'
              ///< EDMEulerScheduler with final_sigmas_type "zero"
  edm_euler,  ///< like euler, but ends with the state at sigma_min, which takes one estimate less;
              ///< that scheduler with "sigma_min", whose last step changes nothing
  heun,       ///< two estimates a step except the last, second order
  res,        ///< one estimate a step and one for the result, second order; keeps the last one
  flow,       ///< Euler over the noise levels of flow matching; for models trained so
  // One estimate a step, of earlier steps' estimates the polynomial in lambda = ln(keep / noise):
  unipc,   ///< order 2 in its predictor and its corrector; UniPCMultistepScheduler
  unipc1,  ///< the same with order 1
  unipc3,  ///< the same with order 3
  dpm,     ///< the predictor of order 2 alone; DPMSolverMultistepScheduler ("2M")
  lcm,     ///< one estimate a step, to which it adds fresh noise of the next level; for distilled
           ///< models of either process
};
/// The names of all samplers: "euler", "edm-euler", "heun", "res", "flow", "unipc", "unipc1",
/// "unipc3", "dpm++", "lcm".
std::vector<std::string_view> sampler_names();
/// Throws Error{usage} listing the names for any other.
Sampler parse_sampler(std::string_view name);
std::string to_string(Sampler sampler);
/// Returns the only process that the sampler is for; nullopt if it is for both.
std::optional<Process> process_of(Sampler sampler);
/// Returns the sampler of a model that names none: euler, or flow for flow matching.
Sampler default_sampler(Process process);
/// Throws Error{usage} if the sampler is not for models of this process.
void check_sampler(Sampler sampler, Process process);

/// A program whose noise levels unipc and dpm++ have in flow matching: diffusers, or the program of
/// a model's authors (Wan's).
enum class SampledAs : std::uint8_t { diffusers, reference };
std::string to_string(SampledAs as);
/// Parses "diffusers" or "reference". Throws Error{usage} for anything else.
SampledAs parse_sampled_as(std::string_view name);

/// The noise levels of a sampling.
struct NoiseSchedule {
  Process process;
  Sampler sampler = Sampler::euler;
  int steps = 16;
  double sigma_min = 0.02, sigma_max = 40;  ///< of EDM
  double shift = 1;                         ///< of flow matching: above 1 more steps at high noise
  /// The noise levels, which replace `steps`, sigma_min, sigma_max and shift. Empty: computed from
  /// these four.
  std::vector<double> sigmas = {};
  SampledAs as = SampledAs::diffusers;
};
inline constexpr int kMostSteps = 10000;

/// Returns n noise levels from sigma_max to sigma_min, evenly spaced in sigma^(1/rho). A single
/// level is sigma_max. Throws Error{usage} unless n >= 1 and 0 < sigma_min < sigma_max.
std::vector<double> karras_sigmas(int n, double sigma_min, double sigma_max, double rho = 7);

/// Returns the falling noise levels. A step leads from each level to the next. The last level is 0,
/// where the state becomes the estimate itself; for edm_euler it is sigma_min a second time. The
/// levels above 0 are the given ones, or else `steps` levels. RES has one level more, because its
/// result is an estimate at sigma_min that does not count as a step. In flow matching n levels are
///
///   flow, lcm            n from 1 to 1/1000, shifted twice, like FlowMatchEulerDiscreteScheduler
///   unipc, diffusers     the first n of n + 1 from 1 to 1/1000, shifted; 1 less 1e-6 in place of 1
///   unipc, reference;
///   dpm++, diffusers     the first n of n + 1 from 0.999 to 0, shifted
///   dpm++, reference     the first n of n + 1 from 1 to 0, shifted
///
/// and of unipc and dpm++ they are float, as in these programs. Throws Error{usage} for impossible
/// levels, and for levels that are equal as float.
std::vector<double> noise_levels(const NoiseSchedule& schedule);
/// Returns the network's time input at each of these levels but the last. It is that of the process
/// (ProcessLevel::time); of unipc and dpm++ in flow matching without its fraction.
std::vector<double> noise_times(const NoiseSchedule& schedule);
/// Returns the standard deviation of the noise that sampling begins with: the first level, but for
/// unipc and dpm++ in flow matching 1, or the first given level before it is float.
double first_deviation(const NoiseSchedule& schedule);
/// Returns the number of estimates in a whole sampling.
int evaluations(const NoiseSchedule& schedule);

/// Returns how many states and estimates a step has in memory at once.
int states_in_memory(Sampler sampler);

/// Writes the estimate of the clean latent for `x` at noise level `level` to `x0` (same size).
using Denoise = std::function<void(std::span<const double> x, double level, std::span<double> x0)>;
/// Writes the fresh noise after `step` steps, of unit variance.
using FreshNoise = std::function<void(int step, std::span<float> noise)>;
/// Returns the noise of (seed, sampler_noise, step, key). Step 0 would be the first noise.
FreshNoise fresh_noise(std::uint64_t seed, std::uint64_t key);

/// The inputs of a sampling.
struct SamplingPath {
  Process process;
  Sampler sampler = Sampler::euler;
  std::vector<double> levels;  ///< from noise_levels()
  Denoise denoise;
  FreshNoise noise = {};  ///< only for lcm
};

/// The state of a sampling: all that is needed to resume it.
struct SamplerState {
  int step = 0;           ///< steps done
  std::vector<double> x;  ///< the state at levels[step]; at step 0 noise of first_deviation()
  /// The estimates of the last steps, the newest first: of res and dpm++ one, of unipc as many as
  /// its order, of the other samplers none. After the first steps there are fewer.
  std::vector<std::vector<double>> estimates = {};
  /// After the first step of unipc, the corrected state at levels[step - 1].
  std::vector<double> corrected = {};
};

/// Moves the state from levels[state.step] to the next level. Does not compute an estimate if both
/// are equal. Throws Error for a state that lacks estimates of earlier steps.
void sample_step(const SamplingPath& path, SamplerState& state);

/// Called with the state after a step.
using AfterStep = std::function<void(const SamplerState& state)>;

/// Does all remaining steps. `after_step` is called after each except the last.
void sample(const SamplingPath& path, SamplerState& state, const AfterStep& after_step = {});

}  // namespace vfm::models
