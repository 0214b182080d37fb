// Starts this program again, as a process that does a part of its work.
//
// argv[1] tells the new process its work; a channel (base/channel.h) connects it with this one.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vfm {

/// The number that the channel of start_own_program() has in the new process.
inline constexpr int kChannelNumber = 3;

/// How this program is started once more.
struct OwnProgram {
  std::string mode;  ///< argv[1]; argv[2] is kChannelNumber
  int channel = -1;  ///< the other process's end
  /// Environment variables that differ from this process's: name and value.
  std::vector<std::pair<std::string, std::string>> variables = {};
  /// The descriptor for its standard output and error; it then has no input and no other descriptor
  /// of this process. -1: it inherits all three, and those that survive an exec.
  int speech = -1;
  /// With `speech`: a descriptor that it keeps open, as kChannelNumber + 1, until it ends; -1:
  /// none.
  int held = -1;
};
/// Returns its process number; the caller must wait for it. Throws Error if it could not be
/// started: `what` completes "cannot start ...".
pid_t start_own_program(const OwnProgram& program, std::string_view what);

}  // namespace vfm
