// Finds the order of programs in a pipe from the pipes that they read and write.
//
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::share {

/// Returns a number that identifies the pipe of a file descriptor, or 0 if the descriptor is not a
/// pipe.
std::uint64_t pipe_name(int fd);

struct PipeEnds {
  bool used = false;  ///< Whether this element stands for a program.
  std::int64_t pid = 0;
  std::uint64_t input = 0, output = 0;  ///< pipe_name() of the pipes.
};

/// Returns the place, 0 for the first, of each program whose `used` is true. Programs of one pipe
/// are in the order of the pipe. Several pipes are in the order in which a shell starts them. If a
/// foreign program separates two parts of a pipe, each part counts as a pipe.
std::vector<int> pipe_places(std::span<const PipeEnds> programs);

/// Sets `place` of all used records of a board. The records have the fields of PipeEnds.
template <class Record, std::size_t N>
void set_places(Record (&records)[N]) {
  std::vector<PipeEnds> programs;
  for (const Record& record : records)
    programs.push_back({record.used != 0, record.pid, record.input, record.output});
  const std::vector<int> places = pipe_places(programs);
  for (std::size_t i = 0; i < N; ++i)
    if (programs[i].used) records[i].place = places[i];
}

}  // namespace vfm::share
