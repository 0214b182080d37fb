// This program, started once more: as a process that does a part of its work.
//
// The program learns by argv[1] what it is then, and has a channel (base/channel.h) to whoever
// started it. Thread-safety: any thread.
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
  /// Variables of its environment that are other than here: name and value.
  std::vector<std::pair<std::string, std::string>> variables = {};
  /// What it has as its standard output and error, with nothing as its input, and no other
  /// descriptor of this process; -1: all three, and those that survive an exec, as they are here.
  int speech = -1;
  /// With `speech`: a descriptor that it holds, as kChannelNumber + 1, until it ends; -1: none.
  int held = -1;
};
/// Returns its process number. It is the caller's to wait for. Throws Error{what could not be
/// started}: `what` completes "cannot start ...".
pid_t start_own_program(const OwnProgram& program, std::string_view what);

}  // namespace vfm
