// Strings of any length that the ranks of a group exchange. The length is sent before the bytes.
//
// Errors, thread-safety: those of the group (dist/group.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "dist/group.h"

namespace vfm::dist {

/// Returns when rank `to` has received the bytes.
void send_bytes(Group& group, int to, const std::string& bytes);
std::string receive_bytes(Group& group, int from);
/// Every rank returns the bytes of the rank `root`; `bytes` of the other ranks is ignored. A
/// collective.
std::string broadcast_bytes(Group& group, std::string bytes, int root);
/// Every rank returns the bytes of all ranks, in the order of the ranks. A collective.
std::vector<std::string> all_gather_bytes(Group& group, const std::string& bytes);

}  // namespace vfm::dist
