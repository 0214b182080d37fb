// Inside lib/dist only: the messages of a group over MPI.
//
// Nothing here blocks: messages are posted in pieces, and polled for later (dist/mpi_engine.h).
// Thread-safety: the thread that calls MPI.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dist/mpi_meeting.h"
#include "dist/wire.h"

namespace vfm::dist {

/// A collective over the world, like World::group(). Returns the wire between `ranks`, which
/// contain this rank's number in the world, `rank`. Null if it is the only one.
std::unique_ptr<Wire> mpi_wire(Meeting& meeting, const std::vector<int>& ranks, int rank);

/// Throws Error with MPI's text unless `code` means success.
void check_mpi(int code, std::string_view operation, std::string_view where);

}  // namespace vfm::dist
