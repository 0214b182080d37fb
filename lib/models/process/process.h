// The EDM frame around the network, shared by training and generation so that the two cannot drift
// apart: preconditioning and loss weight.
//
// x0 is a latent in *model units* (models/process/latent_scale.h: channels have standard deviation
// sigma_data), x = x0 + sigma * noise what the network is asked to clean, F the raw network output:
//
//   D(x; sigma) = c_skip x + c_out F(c_in x, c_noise, text)          the estimate of x0
//   loss = lambda(sigma) (D - x0)^2 = (F - (x0 - c_skip x) / c_out)^2
//
// The last equation holds because lambda = 1 / c_out^2: in units of F every noise level weighs the
// same. Everything about sigma is double: c_skip and c_out cancel badly in float at large sigma.
// Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models"
// (NeurIPS 2022), table 1; sigma_data 0.5 as there and in Cosmos.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace vfm::models {

/// Root mean square of the channels' standard deviations in x0, in model units.
inline constexpr double kSigmaData = 0.5;

/// The four coefficients at one noise level.
struct EdmScaling {
  double skip = 0;   ///< sigma_data^2 / (sigma^2 + sigma_data^2)
  double out = 0;    ///< sigma sigma_data / sqrt(sigma^2 + sigma_data^2)
  double in = 0;     ///< 1 / sqrt(sigma^2 + sigma_data^2)
  double noise = 0;  ///< ln(sigma) / 4, the time input of the network
};

/// sigma > 0.
inline EdmScaling edm_scaling(double sigma, double sigma_data = kSigmaData) {
  const double variance = sigma * sigma + sigma_data * sigma_data;
  const double root = std::sqrt(variance);
  return {sigma_data * sigma_data / variance, sigma * sigma_data / root, 1.0 / root,
          0.25 * std::log(sigma)};
}

}  // namespace vfm::models
