// Finds the fields that an SQL expression compares with constants, and the types of the constants.
//
// In SQLite every number is less than every text, so "motion > '0.5'" is false for each sample,
// without an error. Only plain comparisons are found: a field, an operator (=, <, BETWEEN, IN, ...)
// and constants. The constant may come first. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::shard {

struct Comparison {
  std::string field;
  std::string constant;  ///< First constant, as written: "'0.5'".
  bool text = false;     ///< Whether the constant is a text, not a number.
  /// `fits` counts samples whose field has the constant's type. `differs` counts samples whose
  /// field has another type.
  std::uint64_t fits = 0, differs = 0;
};

/// Returns the comparisons of an expression that SQLite accepts, in the order of the expression.
std::vector<Comparison> constant_comparisons(std::string_view expression);

}  // namespace vfm::shard
