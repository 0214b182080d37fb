// The order of programs in a pipe, as far as their input and output pipes tell.
//
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::share {

/// Names the pipe behind a descriptor; 0: it is not a pipe.
std::uint64_t pipe_name(int fd);

/// One program and its pipes.
struct PipeEnds {
  bool used = false;  ///< false: no program
  std::int64_t pid = 0;
  std::uint64_t input = 0, output = 0;  ///< pipe names
};

/// The place of each program that is used, from 0: programs of one pipe one after the other;
/// several pipes, or parts with another program between them, in the order that a shell starts
/// them.
std::vector<int> pipe_places(std::span<const PipeEnds> programs);

/// Sets `place` of all records of a board that are used, from their other fields in PipeEnds.
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
