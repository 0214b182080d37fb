// SPDX-License-Identifier: Apache-2.0
#include "models/process/process.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/listed.h"
#include "base/philox.h"

namespace vfm::models {
namespace {

constexpr double kFlowTimesteps = 1000;  // what flow matching's time input counts to

}  // namespace

ProcessLevel Process::at(double level) const {
  if (kind_ == flow) return {1 - level, level, 1, level * kFlowTimesteps, 1, -level, -1, -1};
  const double variance = level * level + kSigmaData * kSigmaData;
  const double root = std::sqrt(variance), in = 1.0 / root;
  return {1,
          level,
          in,
          0.25 * std::log(level),
          kSigmaData * kSigmaData / variance,
          level * kSigmaData / root,
          in * level / kSigmaData,
          in * kSigmaData};
}

double Process::shifted(double level, double shift) const {
  return kind_ == flow ? shift * level / (1 + (shift - 1) * level) : level * shift;
}

double Process::quantile(double u, double mean, double std) const {
  return level_of(std::exp(mean + std * inverse_normal_cdf(u)));
}

Process parse_process(std::string_view name) {
  const auto found = std::ranges::find(Process::kNames, name);
  if (found == Process::kNames.end())
    fail_usage("unknown process '{}': choose {}", name, listed(Process::kNames, " or "));
  return static_cast<Process::Kind>(found - Process::kNames.begin());
}

}  // namespace vfm::models
