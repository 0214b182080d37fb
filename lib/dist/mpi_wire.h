// Inside lib/dist only: the messages of a group over MPI.
//
// Nothing here blocks: messages are sent and received at once, in pieces, and looked after while
// the rank waits. Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dist/mpi_meeting.h"
#include "dist/wire.h"

namespace vfm::dist {

/// Waits where all waiting is watched.
class MpiEngine final : public Engine {
 public:
  MpiEngine(Traffic& traffic, Meeting& meeting) : Engine(traffic), meeting_(meeting) {}
  /// MPI may still read and write its memory: the operation stays until it is done.
  void drop(const std::shared_ptr<Running>&) override {}

 protected:
  void wait(const Running& running, const std::function<bool()>& done) override {
    meeting_.until(running.what().place, done, [&] { return running.awaited(); });
  }

 private:
  Meeting& meeting_;
};

/// A collective over the world, as World::group(): the wire between `ranks`, this one `rank` of the
/// world; null for one rank alone.
std::unique_ptr<Wire> mpi_wire(Meeting& meeting, const std::vector<int>& ranks, int rank);

/// Throws Error with MPI's text for a code that is no success.
void check_mpi(int code, std::string_view operation, std::string_view where);

}  // namespace vfm::dist
