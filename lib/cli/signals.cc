// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "base/stop.h"

namespace vfm::cli {
namespace {

sigset_t g_mask_before;  // set once, before threads

sigset_t taken_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    sigaddset(&set, number);
  return set;
}

void handle_signal(int signal_number) {
  if (signal_number == SIGUSR1)
    request_wind_up();
  else
    request_stop(signal_number);
}

void install_handlers(bool long_running) {
  struct sigaction action {};
  action.sa_handler = handle_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESETHAND;  // the second Ctrl-C kills
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    // nohup and background shells ignore some of these on purpose.
    if (::sigaction(number, nullptr, &old) == 0 && old.sa_handler == SIG_IGN) continue;
    ::sigaction(number, &action, nullptr);
  }
  if (long_running) {
    action.sa_flags = 0;
    ::sigaction(SIGUSR1, &action, nullptr);
  }
  ::signal(SIGPIPE, SIG_IGN);
  if (!long_running) stop_at_closed_pipes();
}

void unblock(const sigset_t& set) {
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

void take_signals(bool long_running) {
  // What the handlers do not change stays the kernel's: a signal that kills or is ignored does so
  // whichever thread it is delivered to.
  install_handlers(long_running);
  const sigset_t set = taken_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &g_mask_before);
  ::pthread_atfork(nullptr, nullptr, [] { ::sigprocmask(SIG_SETMASK, &g_mask_before, nullptr); });
  std::thread([set] {
    unblock(set);
    for (;;)
      ::pause();
  }).detach();
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
