// Inside lib/shard only: SQLite's functions that may last, bounded.
//
// SQLite looks up between the steps of its virtual machine, never within a function. Most functions
// take as long as their arguments have bytes. These do not: format() repeats a character as often
// as a number says, a search may compare each byte of one text with each byte of another, and
// json_patch() each name with each other one. json_set() and json_insert() take stack for each
// level of a path.
// SPDX-License-Identifier: Apache-2.0
#pragma once

struct sqlite3;

namespace vfm::shard {

/// From now on such a function of `db`, whose limits are set already, fails where it might take
/// more than a few seconds, or all of the stack; its other answers are SQLite's own. Throws Error
/// when SQLite cannot be started.
void bound_costs(sqlite3* db);

}  // namespace vfm::shard
