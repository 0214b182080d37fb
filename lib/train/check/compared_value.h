// What the check of a layout (train/check/check_parallel.h) compares, and how far a value may be
// off. In f32 the limits are fixed, but for gradients that rounding decides in part, and for the
// later updates of their parameters. In bf16 all limits grow with the difference that bf16 makes on
// one rank. Thread-safety: values, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::train {

/// A compared value: the loss of a step or a validation, the gradient of a parameter, the global
/// norm of gradients, or the change of all weights, or of their average, by updates.
struct ComparedValue {
  std::string name;     ///< name of the parameter, or one of train/check/check_alone.h
  double alone = 0;     ///< on one rank: mean of the loss, or L2 norm
  double together = 0;  ///< the same on all ranks
  /// L2 norm of the difference / `alone`; for later updates the most of any parameter.
  double difference = 0;
  double limit = 0;       ///< largest difference that passes
  std::string fault;      ///< what is wrong; "": nothing
  std::string most;       ///< for an update: the parameter that differs most
  /// Why its size proves nothing: the data leave it no gradient, or rounding decides it.
  std::string without;

  bool of_parameter = false;  ///< it is the gradient of the parameter `name`

  bool good() const { return fault.empty(); }
  std::string title() const { return (of_parameter ? "gradient of " : "") + name; }
};

/// Limits by what rounding changes. `own` is the relative difference that rounding makes in the
/// value on one rank (Alone::own), `exact` its limit where rounding makes none.
struct ValueLimits {
  bool rounded = false;       ///< the run computes in bf16
  bool sent_rounded = false;  ///< gradients are sent in bf16

  static constexpr double kGradient = 1e-4;  ///< `exact` of a gradient

  /// The most that rounding may change in a value.
  double rounding(double own) const;
  /// The limit of a value that does not depend on gradients, if `loss`, or else does.
  double limit(double exact, double own, bool loss = false) const;
  /// The limit of a parameter's later updates: at least that of its gradient, and up to 0.5 where
  /// rounding decides the gradient, whose own rounding is `own_gradient`.
  double limit_of_updates(double exact, double own, double own_gradient) const;
  /// Sets the fault of a value with a limit, unless it has one. A gradient for which the limit is
  /// too small for rounding has no verdict, but must not be lost, nor further off than rounding.
  void judge(ComparedValue& value, double own) const;
};

}  // namespace vfm::train
