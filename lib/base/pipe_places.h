// Where programs are in a pipe, as far as the pipes that they read and write tell.
//
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm {

/// Names the pipe behind a descriptor; 0: it is none.
std::uint64_t pipe_name(int fd);

/// One program, by its pipes.
struct PipeEnds {
  bool used = false;  ///< false: there is none
  std::int64_t pid = 0;
  std::uint64_t input = 0, output = 0;  ///< names
};

/// The place of each program that is used, from 0: those of one pipe one after the other; of
/// several, or where another program stands between two, in the order that a shell starts them in.
std::vector<int> pipe_places(std::span<const PipeEnds> programs);

/// Sets `place` of all records of a board that are used, by what else PipeEnds names of them.
template <class Record, std::size_t N>
void set_places(Record (&records)[N]) {
  std::vector<PipeEnds> programs;
  for (const Record& record : records)
    programs.push_back({record.used != 0, record.pid, record.input, record.output});
  const std::vector<int> places = pipe_places(programs);
  for (std::size_t i = 0; i < N; ++i)
    if (programs[i].used) records[i].place = places[i];
}

}  // namespace vfm
