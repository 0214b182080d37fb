// SPDX-License-Identifier: Apache-2.0
#include "share/own_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "share/channel.h"

namespace vfm::share {
namespace {

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void put(int from, int to) { ::posix_spawn_file_actions_adddup2(&actions_, from, to); }
  void read_nothing() {
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  void close_from(int first) { ::posix_spawn_file_actions_addclosefrom_np(&actions_, first); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// Returns "NAME=VALUE" of `variables`, and of the other variables of this process.
std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> all;
  for (const auto& [name, value] : variables)
    all.push_back(name + '=' + value);
  for (char** own = ::environ; *own != nullptr; ++own) {
    const std::string_view entry = *own;
    bool other = false;
    for (const auto& [name, value] : variables)
      other = other || (entry.starts_with(name) && entry.substr(name.size()).starts_with('='));
    if (!other) all.emplace_back(entry);
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

pid_t start_own_program(const OwnProgram& program, std::string_view what) {
  // Copies above all numbers of the new process, so that no put() overwrites a descriptor that is
  // still needed.
  const auto lifted = [&](int fd) {
    Descriptor copy(fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, kChannelNumber + 2));
    if (fd >= 0 && copy.get() < 0) fail_errno(errno, "cannot start {}", what);
    return copy;
  };
  const Descriptor channel = lifted(program.channel), speech = lifted(program.speech),
                   held = lifted(program.held);
  FileActions actions;
  actions.put(channel.get(), kChannelNumber);
  if (speech.get() >= 0) {
    actions.read_nothing();
    actions.put(speech.get(), STDOUT_FILENO);
    actions.put(speech.get(), STDERR_FILENO);
    if (held.get() >= 0) actions.put(held.get(), kChannelNumber + 1);
    actions.close_from(kChannelNumber + (held.get() >= 0 ? 2 : 1));
  }
  std::vector<std::string> arguments{::program_invocation_short_name, program.mode,
                                     std::to_string(kChannelNumber)};
  std::vector<std::string> environment = environment_with(program.variables);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, "/proc/self/exe", actions.get(), nullptr,
                                  pointers_to(arguments).data(), pointers_to(environment).data());
  if (error != 0) fail_errno(error, "cannot start {}", what);
  return pid;
}

}  // namespace vfm::share
