// SPDX-License-Identifier: Apache-2.0
#include "train/check/compared_value.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace vfm::train {
namespace {

constexpr double kRoundedLimit = 2e-2, kRoundings = 2;  // of bf16
constexpr double kMostLimit = 0.5;                      // a gradient that is lost differs by 1
constexpr double kLastBits = 4, kMostExact = 1e-2;      // of f32, for gradients

}  // namespace

double ValueLimits::rounding(double own) const {
  return (rounded ? kRoundings : kLastBits) * own;
}

double ValueLimits::limit(double exact, double own, bool loss) const {
  if (rounded || (sent_rounded && !loss)) exact = std::max(exact, kRoundedLimit);
  return std::max(exact, std::min(rounding(own), rounded ? kMostLimit : kMostExact));
}

double ValueLimits::limit_of_updates(double exact, double own, double own_gradient) const {
  return std::max({limit(exact, own), limit(kGradient, own_gradient),
                   std::min(rounding(own_gradient), kMostLimit)});
}

void ValueLimits::judge(ComparedValue& value, double own) const {
  const double most = rounding(own);
  const bool decided = value.of_parameter && std::isfinite(most) && most > value.limit &&
                       value.together > 0 && value.difference <= most;
  if (decided && value.difference > value.limit) value.without = "rounding decides it";
  if (!value.fault.empty()) return;
  if (!std::isfinite(value.together) || std::isnan(value.difference))
    value.fault = "not finite";
  else if (!value.without.empty())
    return;  // what there is, is rounding
  else if (value.alone == 0 && value.together == 0)
    value.fault = "zero both times, which proves nothing";
  else if (value.difference > value.limit)
    value.fault = value.most.empty() ? "differs" : fmt::format("differs, most in '{}'", value.most);
}

}  // namespace vfm::train
