// Finds the fields that an SQL expression compares with constants, and the constants' types.
//
// For SQLite every number is less than every text, so "motion > '0.5'" is quietly false for each
// sample. It finds only plain comparisons: a field, an operator (=, <, BETWEEN, IN, ...) and
// constants, in either order. Comparisons of computed values are ignored. Thread-safety: pure
// function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::shard {

struct Comparison {
  std::string field;
  std::string constant;  ///< as it is written, the first of several: "'0.5'"
  bool text = false;     ///< a text, else a number
  /// Samples in which the field is of this type, and of the other one.
  std::uint64_t fits = 0, differs = 0;
};

/// In the order of the expression, which SQLite has accepted.
std::vector<Comparison> constant_comparisons(std::string_view expression);

}  // namespace vfm::shard
