// Starts this program again as a second process that does part of the work.
//
// A channel (share/channel.h) connects the two processes.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vfm::share {

/// Number of the channel's file descriptor in the new process.
inline constexpr int kChannelNumber = 3;

struct OwnProgram {
  std::string mode;  ///< argv[1] of the new process. argv[2] is kChannelNumber.
  int channel = -1;  ///< The end of the channel that the new process gets.
  /// Names and values of environment variables that are added or replaced for the new process.
  std::vector<std::pair<std::string, std::string>> variables = {};
  /// File descriptor for standard output and standard error of the new process. With a descriptor,
  /// the new process has an empty standard input, and inherits only the channel and `held`. With
  /// -1, the new process inherits standard input, output and error, and all descriptors without
  /// FD_CLOEXEC.
  int speech = -1;
  /// A further file descriptor for the new process, or -1. The new process keeps this descriptor
  /// open as number kChannelNumber + 1 until the process ends. Used only with `speech`.
  int held = -1;
};
/// Starts the new process, and returns its process id. The caller must wait for the process. Throws
/// Error "cannot start <what> ...".
pid_t start_own_program(const OwnProgram& program, std::string_view what);

}  // namespace vfm::share
