// The optimizer: AdamW over all parameters of a model, with a running average of the weights.
//
// Moments are on the parameters' device; the average is there, too, or in the host's memory. The
// arithmetic is ops/optim/adamw.h. An average that the host keeps of weights on a GPU is updated
// asynchronously (tensor/download.h); it is done before the next update. Thread-safety: one thread
// at a time.
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
  /// Moments begin with zero, the average with the parameters' values. `parameters` must outlive
  /// this object.
  Optimizer(const OptimizerRecipe& optimizer, const EmaRecipe& ema,
            const nn::ParameterList& parameters);

  /// Updates with the gradients times `factor`, clipped as the recipe says. Returns their global
  /// norm before clipping; if it is not finite, nothing is changed. Waits for the device. If
  /// parameters are parts of tensors, `squares` must be squares_of_gradients()
  /// (train/step/gradients.h).
  double update(double lr, double factor, std::optional<double> squares = {});

  /// Continues with the rates and limits of another recipe. The type of the moments stays.
  void follow(const OptimizerRecipe& recipe) { recipe_ = recipe; }

  bool has_ema() const { return ema_recipe_.mode != "off"; }
  /// Restarts the average with the parameters' values; call it after these were overwritten.
  void restart_ema();
  /// Exchanges the average with the parameters' values; a second call undoes it.
  void swap_ema();

  const nn::ParameterList& parameters() const { return parameters_; }

  /// The average in f32, on the parameters' device or on the host; empty if there is none. Waits
  /// for the last update of the average, and throws what that threw.
  const std::vector<Tensor>& ema() const;

  std::vector<Tensor> m, v;  ///< moments on the parameters' device, f32 or bf16
  std::int64_t updates = 0;  ///< updates so far, without skipped steps

 private:
  Device device() const { return parameters_.front()->device(); }
  bool ema_on_host() const { return ema_recipe_.place == "host" && device() != Device::cpu; }
  double ema_decay(std::int64_t last) const;
  void average_on_host(float decay);

  OptimizerRecipe recipe_;
  EmaRecipe ema_recipe_;
  const nn::ParameterList& parameters_;
  std::vector<Tensor> ema_;
  mutable Download download_;  // of weights, for an average on the host; uses the other members
};

}  // namespace vfm::train
