// The order of programs in a pipe, from the pipes that they read and write.
//
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::share {

/// Returns a number that identifies the pipe of a descriptor, or 0 if the descriptor is no pipe.
std::uint64_t pipe_name(int fd);

/// One program and its pipes.
struct PipeEnds {
  bool used = false;  ///< false: no program
  std::int64_t pid = 0;
  std::uint64_t input = 0, output = 0;  ///< pipe names
};

/// Returns the place of each used program, from 0. Programs of one pipe are in the pipe's order.
/// Several pipes, or parts of a pipe with a foreign program between them, are in the order in which
/// a shell starts them.
std::vector<int> pipe_places(std::span<const PipeEnds> programs);

/// Sets `place` of all used records of a board, from the fields that they share with PipeEnds.
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
