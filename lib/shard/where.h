// Filters of samples: an SQL expression over the JSON of a sample, evaluated by SQLite.
//
// An example is "motion > 0.002 AND seconds >= 2". Names in an expression are fields of the
// sample's JSON. A missing field is NULL. Booleans are 1 and 0. Objects and arrays are JSON text,
// for the operators -> and ->>. SQLite's expressions work (LIKE, IN, BETWEEN, CASE, subqueries).
// Functions must be deterministic and use only their arguments. An evaluation ends after about a
// second, or at a signal. Thread-safety: each thread needs its own Where.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "shard/comparisons.h"

namespace vfm::shard {

class Where {
 public:
  /// Parses an expression. Throws Error{usage}, with SQLite's reason, if the expression is invalid.
  explicit Where(const std::string& expression);
  ~Where();
  Where(Where&&) noexcept;

  /// Returns the fields that the expression names, in the order in which SQLite reads them.
  const std::vector<std::string>& fields() const;
  /// Returns the comparisons with constants. keep() updates their counts.
  const std::vector<Comparison>& comparisons() const;
  /// Returns whether the expression is true (not false, not NULL) for the sample. Throws Error if
  /// the evaluation fails or takes too long. Throws Stopped.
  bool keep(const Json& meta);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns SQLite's name and version: "SQLite 3.40.1".
std::string sql_version();

/// Returns at most three of `names` that are similar to `word`, most similar first.
std::vector<std::string> near_matches(const std::string& word,
                                      const std::vector<std::string>& names);

/// Returns the elements of `names` that differ from `word` by one letter, or by two if `word` is
/// long. The most similar name comes first.
std::vector<std::string> slips_of(const std::string& word, const std::vector<std::string>& names);

}  // namespace vfm::shard
