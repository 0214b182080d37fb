// Limits the time of SQLite's functions, as a defence against hostile expressions. Only lib/shard
// uses this header.
//
// SQLite does not check for interrupts within a function. format(), searches in texts and
// json_patch() may therefore run very long. json_set() and json_insert() use stack for each level
// of a path.
// SPDX-License-Identifier: Apache-2.0
#pragma once

struct sqlite3;

namespace vfm::shard {

/// Makes the functions above fail in `db` if they might take more than a few seconds, or all of the
/// stack. The limits of `db` must be set before. Throws Error if SQLite cannot be started.
void bound_costs(sqlite3* db);

}  // namespace vfm::shard
