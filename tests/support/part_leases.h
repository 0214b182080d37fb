// Choices of parts, and leases of processes that nobody here can see, for tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "io/process_name.h"
#include "parts/part_choice.h"

namespace vfm::parts {

constexpr double kBeat = 0.2;  // seconds

inline PartChoice any_part(std::optional<int> parts) {
  PartChoice choice;
  choice.kind = PartChoice::Kind::automatic;
  choice.parts = parts;
  choice.lease_seconds = kBeat;
  return choice;
}

inline PartChoice fixed_part(int part, std::optional<int> parts) {
  PartChoice choice = any_part(parts);
  choice.kind = PartChoice::Kind::fixed;
  choice.part = part;
  return choice;
}

inline std::string plain_digest(int part) {
  return fmt::format("digest of {}", part);
}

/// The contents of a lease.
inline std::string lease_text(const io::ProcessName& process, double patience,
                              const std::string& begun = "2026-01-01T00:00:00Z") {
  return dump_json({{"host", process.host},
                    {"pid", process.pid},
                    {"machine", process.machine},
                    {"begun", begun},
                    {"beat_seconds", patience / 3},
                    {"patience", patience}});
}

/// A process of a host where nobody here can see it.
inline const io::ProcessName kFarProcess{"far", 12, "another machine"};

/// A process of this host that has ended.
inline io::ProcessName gone_process() {
  io::ProcessName gone = io::ProcessName::self();
  gone.pid = 0x3ffffff;  // above the numbers of processes
  return gone;
}

/// Starts a process that does `work` and ends with its status.
inline pid_t start(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  int status = 99;
  try {
    status = work();
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
  }
  ::_exit(status);
}

/// Waits for the process. Returns its status, or 1000 and the number of the signal.
inline int status_of(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace vfm::parts
