// Options of --balance (dataset/balance.h). Thread-safety: values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::dataset {

struct BalanceRule {
  std::string name;
  double strength = 1;  ///< Above 0 and up to 1.
  bool clusters() const { return name.ends_with(".npy"); }
};

struct BalanceOptions {
  std::vector<BalanceRule> rules;
  /// The number of clusters of vectors. 0 means the square root of the number of vectors, at most
  /// 1,024.
  std::size_t clusters = 0;

  /// Returns the options as JSON, such as {"camera": 1}.
  Json json() const;
};

inline constexpr std::size_t kMostClusters = 1 << 12;

/// Parses names with strengths, such as "camera=1,caption_topic". The default strength is 1. Throws
/// Error{usage}.
std::vector<BalanceRule> parse_balance(std::string_view text);

}  // namespace vfm::dataset
