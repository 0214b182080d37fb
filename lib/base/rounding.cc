// SPDX-License-Identifier: Apache-2.0
#include "base/rounding.h"

#include <cmath>

namespace vfm {

double six_digits(double value) {
  const double rounded = std::round(value * 1e6) / 1e6;
  return std::isfinite(rounded) ? rounded : 0;
}

}  // namespace vfm
