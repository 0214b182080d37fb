// Limits of what the check of a layout compares.
// SPDX-License-Identifier: Apache-2.0
#include "train/check/compared_value.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace vfm::train;

namespace {

/// A gradient that differs so much, whose rounding on one rank is `own`.
ComparedValue judged(double difference, double own, double together = 1, bool of_parameter = true,
                     const ValueLimits& limits = {}) {
  ComparedValue value{.name = "w", .alone = 1, .together = together, .difference = difference};
  value.of_parameter = of_parameter;
  value.limit = limits.limit(ValueLimits::kGradient, own);
  limits.judge(value, own);
  return value;
}

}  // namespace

TEST_CASE("compared values: limits grow with what rounding changes, up to the largest") {
  const ValueLimits exact, rounded{.rounded = true}, sent{.sent_rounded = true};
  CHECK(exact.limit(1e-4, 0) == 1e-4);
  CHECK(exact.limit(1e-4, 1e-5) == 1e-4);
  CHECK(exact.limit(1e-4, 1e-4) == Approx(4e-4));
  CHECK(exact.limit(1e-4, 1) == 1e-2);
  CHECK(rounded.limit(1e-4, 0) == 2e-2);
  CHECK(rounded.limit(1e-4, 0.1) == Approx(0.2));
  CHECK(rounded.limit(1e-4, 1) == 0.5);
  CHECK(sent.limit(1e-4, 0) == 2e-2);
  CHECK(sent.limit(1e-5, 0, true) == 1e-5);
}

TEST_CASE("compared values: what is beyond the limit differs, unless rounding decides it") {
  CHECK(judged(0.9e-4, 0).good());
  CHECK(judged(1.1e-4, 0).fault == "differs");
  CHECK(judged(3e-4, 1e-4).good());
  CHECK(judged(5e-4, 1e-4).fault == "differs");
  // Four times 0.1 is more than the largest limit.
  CHECK(judged(0.9e-2, 0.1).without.empty());
  const ComparedValue decided = judged(0.3, 0.1);
  CHECK(decided.good());
  CHECK(decided.without == "rounding decides it");
  // Further off than rounding, lost, or no gradient.
  CHECK(judged(0.5, 0.1).fault == "differs");
  CHECK(judged(0.3, 0.1, 0).fault == "differs");
  CHECK(judged(0.3, 0.1, 1, false).fault == "differs");
  CHECK(judged(std::nan(""), 0.1).fault == "not finite");
  CHECK(judged(0.3, 0.1, INFINITY).fault == "not finite");
  const ValueLimits rounded{.rounded = true};
  CHECK(judged(0.9, 0.4, 1, true, rounded).fault == "differs");
  CHECK(judged(0.9, 0.6, 1, true, rounded).without == "rounding decides it");
  CHECK(judged(1.3, 0.6, 1, true, rounded).fault == "differs");
}

TEST_CASE("compared values: later updates have at least the limit of their gradient") {
  const ValueLimits limits;
  CHECK(limits.limit_of_updates(1e-3, 0, 0) == 1e-3);
  CHECK(limits.limit_of_updates(1e-3, 0, 1e-3) == Approx(4e-3));
  // Rounding decides the gradient, but the update is not lost.
  CHECK(limits.limit_of_updates(1e-3, 0, 0.1) == Approx(0.4));
  CHECK(limits.limit_of_updates(1e-3, 0, 10) == 0.5);
}
