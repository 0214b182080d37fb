// Names processes, for files that processes of several hosts write. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// The process that works at something in a store, as other hosts see it.
struct ProcessName {
  std::string host;
  long pid = 0;
  /// A name of the running system and its numbers of processes. Only where two workers have one
  /// `machine` can a worker ask whether the process of the other is there.
  std::string machine;

  static ProcessName self();
  /// Returns true if the process has ended, and false if it runs, or if nobody can tell here.
  bool is_gone() const;
  /// Returns "HOST-PID-MACHINE" with 8 characters of the machine, or "HOST-PID" if there is none:
  /// two containers may have equal hosts and numbers. Other characters of the host than letters,
  /// digits, '.', '-' and '_' are replaced.
  std::string name() const;
};

}  // namespace vfm::io
