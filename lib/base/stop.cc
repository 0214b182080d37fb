// SPDX-License-Identifier: Apache-2.0
#include "base/stop.h"

#include <signal.h>

#include <atomic>

#include "base/error.h"
#include "base/run_end.h"
#include "base/safe_point.h"
#include "base/save_at_term.h"
#include "base/thread_stop.h"

namespace vfm {
namespace {
std::atomic<int> g_signal{0};
std::atomic<bool> g_wind_up{false}, g_closed_pipes_stop{false};
std::atomic<bool> g_save_at_term{false}, g_term{false};
std::atomic<void (*)()> g_at_safe_points{nullptr};
thread_local const std::atomic<bool>* t_flag = nullptr;
static_assert(std::atomic<int>::is_always_lock_free, "set from a signal handler");
}  // namespace

void request_stop(int signal_number) noexcept {
  if (signal_number == SIGTERM && g_save_at_term) {
    g_term = true;
    return request_wind_up();
  }
  int none = 0;
  g_signal.compare_exchange_strong(none, signal_number);
}

int stop_signal() noexcept {
  return g_signal.load(std::memory_order_relaxed);
}

bool stop_requested() noexcept {
  return stop_signal() != 0 || run_ends() || (t_flag && *t_flag);
}

void stop_thread_by(const std::atomic<bool>* flag) noexcept {
  t_flag = flag;
}

void act_at_safe_points(void (*act)()) noexcept {
  g_at_safe_points = act;
}

void check_stop() {
  if (const auto act = g_at_safe_points.load(std::memory_order_relaxed)) act();
  if (stop_requested()) throw Stopped();
}

void stop_at_closed_pipes() noexcept {
  g_closed_pipes_stop = true;
}

void note_closed_pipe() noexcept {
  if (g_closed_pipes_stop) request_stop(SIGPIPE);
}

void request_wind_up() noexcept {
  g_wind_up = true;
}
bool wind_up_requested() noexcept {
  return g_wind_up.load(std::memory_order_relaxed);
}

SaveAtTerm::SaveAtTerm() noexcept {
  g_save_at_term = true;
}
SaveAtTerm::~SaveAtTerm() {
  g_save_at_term = false;
}
bool term_requested() noexcept {
  return g_term.load(std::memory_order_relaxed);
}

}  // namespace vfm
