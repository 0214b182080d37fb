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

/// Makes such functions fail in `db` if a call might take more than a few seconds, or more than the
/// stack. Call it after the limits of `db` (sqlite3_limit()) are set. Throws Error if SQLite cannot
/// be started.
void bound_costs(sqlite3* db);

}  // namespace vfm::shard
