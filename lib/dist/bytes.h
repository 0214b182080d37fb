// Bytes of any number between the ranks of a group: the number goes first.
//
// Errors, thread-safety: those of the group (dist/group.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "dist/group.h"

namespace vfm::dist {

/// Returns when they are received.
void send_bytes(Group& group, int to, const std::string& bytes);
std::string receive_bytes(Group& group, int from);
/// Those of the rank `root`, on every rank; elsewhere `bytes` does not matter. A collective.
std::string broadcast_bytes(Group& group, std::string bytes, int root);
/// Those of every rank, by rank, on every rank. A collective.
std::vector<std::string> all_gather_bytes(Group& group, const std::string& bytes);

}  // namespace vfm::dist
