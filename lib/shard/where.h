// Filters: an SQL expression over the JSON of a sample, evaluated by SQLite.
//
// An expression is, for example, "motion > 0.002 AND seconds >= 2". Names in an expression are
// fields of the sample's JSON. A missing field is NULL; booleans are 1 and 0; objects and arrays
// are JSON text, for the operators -> and ->>. SQLite's expressions work (LIKE, IN, BETWEEN, CASE,
// subqueries). Only functions that are deterministic and use nothing but their arguments are
// allowed. An evaluation ends after about a second, or at a signal. Thread-safety: each thread
// needs its own Where.
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

  /// Returns the fields that the expression names, in the order in which SQLite finds them.
  const std::vector<std::string>& fields() const;
  /// Returns the comparisons with constants; keep() counts the types of their fields.
  const std::vector<Comparison>& comparisons() const;
  /// Returns whether the expression is true (not false, not NULL) for the sample. Throws Error if
  /// the evaluation fails or takes too long; Stopped.
  bool keep(const Json& meta);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns "SQLite 3.40.1", for example.
std::string sql_version();

/// Returns at most three of `names` that `word` may mean, most similar first.
std::vector<std::string> near_matches(const std::string& word,
                                      const std::vector<std::string>& names);

/// Returns the elements of `names` that differ by one or two letters from a long `word`, most
/// similar first.
std::vector<std::string> slips_of(const std::string& word, const std::vector<std::string>& names);

}  // namespace vfm::shard
