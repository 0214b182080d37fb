// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string_view>
#include <thread>

#include "base/stop.h"
#include "io/mapping_list.h"

namespace vfm::cli {
namespace {

sigset_t g_mask_before;  // Set once, before threads.

sigset_t taken_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    sigaddset(&set, number);
  return set;
}

/// Slurm and mpirun send a SIGTERM each to the ranks of a job that is cancelled, so a SIGTERM of
/// the next seconds belongs to the first one.
bool is_second_term() {
  constexpr std::time_t kSameSeconds = 5;
  static std::time_t first = 0;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (first == 0) first = now.tv_sec;
  return now.tv_sec - first > kSameSeconds;
}

void handle_signal(int signal_number) {
  if (signal_number == SIGUSR1) return request_wind_up();
  if (signal_number == SIGTERM && is_second_term()) {
    ::signal(SIGTERM, SIG_DFL);
    ::raise(SIGTERM);
  }
  request_stop(signal_number);
}

void install_handlers(bool long_running, bool winds_up) {
  struct sigaction action {};
  action.sa_handler = handle_signal;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    action.sa_flags = number == SIGTERM ? 0 : SA_RESETHAND;  // A second Ctrl-C kills.
    // nohup and background shells ignore some of these on purpose.
    if (::sigaction(number, nullptr, &old) == 0 && old.sa_handler == SIG_IGN) continue;
    ::sigaction(number, &action, nullptr);
  }
  if (winds_up) {
    action.sa_flags = 0;
    ::sigaction(SIGUSR1, &action, nullptr);
  }
  ::signal(SIGPIPE, SIG_IGN);
  if (!long_running) stop_at_closed_pipes();
}

// The beginning of the message. Set before threads.
const char* g_lost_file_words = "";

/// A line that a signal handler writes without memory or locks.
class HandlerLine {
 public:
  /// Replaces control characters.
  HandlerLine& operator<<(std::string_view words) {
    for (const char c : words)
      if (size_ < text_.size())
        text_[size_++] = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    return *this;
  }
  void write() {
    text_[std::min(size_, text_.size() - 1)] = '\n';
    size_ = std::min(size_ + 1, text_.size());
    if (::write(STDERR_FILENO, text_.data(), size_) < 0) return;
  }

 private:
  std::array<char, 1024> text_;
  std::size_t size_ = 0;
};

/// The failed instruction would fail again, so the signal cannot become an exception. The kernel
/// delivers it to the thread that caused it.
void handle_lost_page(int number, siginfo_t* info, void*) {
  const io::FileMapping mapping = io::mapping_at(info->si_addr);
  if (!mapping.path) {
    ::signal(number, SIG_DFL);  // Not ours, so the default applies.
    ::raise(number);
    return;
  }
  struct stat now {};
  const bool cut =
      ::stat(mapping.path, &now) == 0 && static_cast<std::size_t>(now.st_size) < mapping.bytes;
  constexpr std::string_view kOverProgress = "\r\x1b[K";
  if (::isatty(STDERR_FILENO) != 0 &&
      ::write(STDERR_FILENO, kOverProgress.data(), kOverProgress.size()) < 0)
    ::_exit(1);
  HandlerLine line;
  line << g_lost_file_words << ": '" << mapping.path
       << (cut ? "' was cut while it was read: make it whole, and give the same command again"
               : "' can no longer be read: its disk or server does not answer");
  line.write();
  ::_exit(1);
}

void unblock(const sigset_t& set) {
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

void hear_of_children() {
  ::signal(SIGCHLD, SIG_DFL);
}

void take_signals(bool long_running, bool winds_up) {
  // One thread takes all signals with handlers. Signals without handlers are ignored or kill as
  // usual, in any thread.
  install_handlers(long_running, winds_up);
  const sigset_t set = taken_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &g_mask_before);
  ::pthread_atfork(nullptr, nullptr, [] { ::sigprocmask(SIG_SETMASK, &g_mask_before, nullptr); });
  std::thread([set] {
    unblock(set);
    for (;;)
      ::pause();
  }).detach();
}

void take_lost_files(const char* program) {
  g_lost_file_words = program;
  struct sigaction action {};
  action.sa_sigaction = handle_lost_page;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

void leave_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGPIPE})
    ::signal(number, SIG_IGN);
}

void end_by_signal(int signal_number) {
  ::signal(signal_number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  unblock(set);
  ::raise(signal_number);
}

}  // namespace vfm::cli
