// The optimizer: AdamW over all parameters of a model, with a running average of the weights.
//
// Moments lie where the parameters do, the average too or in the host's memory. The arithmetic is
// ops/optim/adamw.h. An average that the host keeps of weights on a GPU is changed meanwhile
// (tensor/download.h), until the next update at the latest.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nn/parameter.h"
#include "tensor/download.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

/// Weight of the old average at update n (1 is the first).
///   "decay": min(decay, (1+n)/(10+n)), so that the first weights are soon forgotten
///   "power": (1 - 1/n)^(gamma+1), gamma from `length` s: the largest root of
///            gamma^3 + 7 gamma^2 + (16 - s^-2) gamma + 12 - s^-2 = 0
/// Source of "power": Karras et al., "Analyzing and improving the training dynamics of diffusion
/// models" (CVPR 2024), appendix C.
double ema_beta(const EmaRecipe& recipe, std::int64_t n);
/// The gamma of "power" for a relative standard deviation s.
double power_ema_gamma(double s);

class Optimizer {
 public:
  /// Moments are zero, the average begins with the parameters' values. `parameters` must outlive
  /// it.
  Optimizer(const OptimizerRecipe& optimizer, const EmaRecipe& ema,
            const nn::ParameterList& parameters);

  /// One update with gradients `factor` * gradients, clipped as the recipe says. Returns their
  /// global norm before that; where it is not finite, nothing is changed. Waits for the device.
  /// Where parameters are parts, `squares` is what squares_of_gradients() (train/step/gradients.h)
  /// says.
  double update(double lr, double factor, std::optional<double> squares = {});

  /// Goes on with the rates and limits of another recipe; moments stay of the type that they are.
  void follow(const OptimizerRecipe& recipe) { recipe_ = recipe; }

  bool has_ema() const { return ema_recipe_.mode != "off"; }
  /// Restarts the average with the parameters' values: after these were overwritten.
  void restart_ema();
  /// Exchanges the average with the parameters' values; a second call undoes it.
  void swap_ema();

  const nn::ParameterList& parameters() const { return parameters_; }

  /// The average, f32, where the parameters are or on the host; empty when off. Waits until it is
  /// that of the last update; throws what changing it threw.
  const std::vector<Tensor>& ema() const;

  std::vector<Tensor> m, v;  ///< moments, where the parameters are, f32 or bf16
  std::int64_t updates = 0;  ///< how many so far; skipped steps do not count

 private:
  Device device() const { return parameters_.front()->device(); }
  bool ema_on_host() const { return ema_recipe_.place == "host" && device() != Device::cpu; }
  double ema_decay(std::int64_t last) const;
  void average_on_host(float decay);

  OptimizerRecipe recipe_;
  EmaRecipe ema_recipe_;
  const nn::ParameterList& parameters_;
  std::vector<Tensor> ema_;
  mutable Download download_;  // of weights, for an average on the host; uses the others
};

}  // namespace vfm::train
