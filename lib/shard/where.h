// Filters: an SQL expression over the JSON of a sample, evaluated by SQLite.
//
// "motion > 0.002 AND seconds >= 2". Names are fields of the sample's JSON; a field that a sample
// does not have is NULL; booleans are 1 and 0; objects and arrays are JSON text, for the operators
// -> and ->>. SQLite's expressions work (LIKE, IN, BETWEEN, CASE, subqueries). Its functions work
// if they are on an allow list of those that are deterministic and reach only their arguments. An
// evaluation ends after about a second, or at a signal. Thread-safety: one Where a thread.
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
  /// Throws Error{usage} for an invalid expression, with SQLite's reason.
  explicit Where(const std::string& expression);
  ~Where();
  Where(Where&&) noexcept;

  /// Fields that the expression names, in the order in which SQLite met them.
  const std::vector<std::string>& fields() const;
  /// Its comparisons with constants, with counts by keep() of their fields' types.
  const std::vector<Comparison>& comparisons() const;
  /// Whether the expression is true (not false, not NULL) for the sample. Throws Error if it cannot
  /// be evaluated on the values, or takes too long; Stopped.
  bool keep(const Json& meta);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// "SQLite 3.40.1", which evaluates the expressions.
std::string sql_version();

/// The names that `word` may mean, most similar first, at most three.
std::vector<std::string> near_matches(const std::string& word,
                                      const std::vector<std::string>& names);

/// The names of `names` that are one or two letters from a long `word`, most similar first.
std::vector<std::string> slips_of(const std::string& word, const std::vector<std::string>& names);

}  // namespace vfm::shard
