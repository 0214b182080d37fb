// Inside lib/dist only: the messages of a group over MPI.
//
// Nothing here blocks: messages are sent and received at once, in pieces, and looked after
// meanwhile (dist/mpi_engine.h). Thread-safety: the thread that calls MPI.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dist/mpi_meeting.h"
#include "dist/wire.h"

namespace vfm::dist {

/// A collective over the world, as World::group(): the wire between `ranks`, this one `rank` of the
/// world; null for one rank alone.
std::unique_ptr<Wire> mpi_wire(Meeting& meeting, const std::vector<int>& ranks, int rank);

/// Throws Error with MPI's text for a code that is no success.
void check_mpi(int code, std::string_view operation, std::string_view where);

}  // namespace vfm::dist
