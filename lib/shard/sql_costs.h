// Inside lib/shard only: bounds the time of SQLite's functions, against hostile expressions.
//
// SQLite does not check for interrupts within a function. Most functions take time in proportion to
// their arguments' bytes. Some take more: format() can repeat a character any number of times, a
// search may compare each byte of one text with each byte of another, and json_patch() each name
// with all others. json_set() and json_insert() use stack for each level of a path.
// SPDX-License-Identifier: Apache-2.0
#pragma once

struct sqlite3;

namespace vfm::shard {

/// From now on these slower functions of `db` fail if they might take more than a few seconds, or
/// all of the stack. Otherwise their results are SQLite's own. The limits of `db` must be set
/// before. Throws Error if SQLite cannot be started.
void bound_costs(sqlite3* db);

}  // namespace vfm::shard
