// Starts this program again, as a process that does part of its work.
//
// argv[1] tells the new process its work; a channel (share/channel.h) connects both processes.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vfm::share {

/// The number of the channel's descriptor in the new process.
inline constexpr int kChannelNumber = 3;

/// The arguments of start_own_program().
struct OwnProgram {
  std::string mode;  ///< argv[1]; argv[2] is kChannelNumber
  int channel = -1;  ///< the new process's end
  /// Environment variables that differ from this process's: name and value.
  std::vector<std::pair<std::string, std::string>> variables = {};
  /// The new process's standard output and error. With `speech`, the new process has no input and
  /// no other descriptor of this process. If `speech` is -1, the new process inherits standard
  /// input, output and error, and all descriptors that survive an exec.
  int speech = -1;
  /// With `speech`, one more descriptor, which the new process keeps open as kChannelNumber + 1
  /// until it ends, or -1.
  int held = -1;
};
/// Returns the new process's number; the caller must wait for the process. Throws Error "cannot
/// start <what> ...".
pid_t start_own_program(const OwnProgram& program, std::string_view what);

}  // namespace vfm::share
