// SPDX-License-Identifier: Apache-2.0
#include "io/process_name.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/hash.h"

namespace vfm::io {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] ? name.data() : "localhost";
}

/// Two containers of one host have different numbers of processes. Returns "" if the system does
/// not tell.
std::string machine_name() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::array<char, 64> space{};
  const ssize_t size = ::readlink("/proc/self/ns/pid", space.data(), space.size());
  if (boot.empty() || size <= 0) return "";
  return hash_hex(boot + std::string(space.data(), static_cast<std::size_t>(size))).substr(0, 16);
}

/// Whether a process has ended and its parent has not asked how. A parent that never does so keeps
/// its number. Source: proc(5).
bool has_ended(long pid) {
  std::string stat;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), stat);
  // "PID (NAME) STATE ...", and NAME may have any characters.
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == stat.npos || (stat[name_end + 2] != 'Z' && stat[name_end + 2] != 'X'))
    return false;
  // Its other threads may still end.
  std::istringstream fields(stat.substr(name_end + 2));
  constexpr int kThreads = 18;  // after STATE, which is the first of these
  std::string field;
  for (int i = 0; i < kThreads; ++i)
    fields >> field;
  return fields && (field == "0" || field == "1");
}

}  // namespace

ProcessName ProcessName::self() {
  // The machine does not change. The process does, with fork().
  static const std::string machine = machine_name();
  return {host_name(), ::getpid(), machine};
}

bool ProcessName::is_gone() const {
  if (machine.empty() || machine != self().machine || pid <= 0) return false;
  if (::kill(static_cast<pid_t>(pid), 0) != 0) return errno == ESRCH;
  return has_ended(pid);
}

std::string ProcessName::name() const {
  std::string text;
  for (const char c : host) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-';
    text += plain ? c : '_';
  }
  text += "-" + std::to_string(pid);
  return machine.empty() ? text : text + "-" + machine.substr(0, 8);
}

}  // namespace vfm::io
