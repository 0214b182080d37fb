// SPDX-License-Identifier: Apache-2.0
#include "io/remote/retry.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/philox.h"
#include "base/stop.h"
#include "io/process_name.h"

namespace vfm::io {
namespace {

constexpr double kFirstPause = 0.1, kLongestPause = 20;  // seconds

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void sleep_unless_stopped(double seconds, const std::atomic<bool>* cancelled) {
  const double until = monotonic_seconds() + seconds;
  for (;;) {
    check_stop();
    if (cancelled && cancelled->load(std::memory_order_relaxed)) throw Stopped();
    const double left = until - monotonic_seconds();
    if (left <= 0) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, 0.02)));
  }
}

/// Differs between processes, so that many do not come back at the same time.
double jitter() {
  static const std::uint64_t name = random_key(ProcessName::self().name());
  static std::atomic<std::uint32_t> drawn{0};
  const auto words =
      philox4x32({drawn.fetch_add(1), 0, 0, 0},
                 {static_cast<std::uint32_t>(name), static_cast<std::uint32_t>(name >> 32)});
  return words[0] * 0x1p-32;
}

}  // namespace

bool may_succeed_later(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
         status == 504;
}

Retry::Retry(double patience, const std::atomic<bool>* cancelled)
    : Retry(patience,
            {monotonic_seconds,
             [cancelled](double seconds) { sleep_unless_stopped(seconds, cancelled); }, jitter}) {}

Retry::Retry(double patience, World world)
    : patience_(patience), world_(std::move(world)), last_(world_.now()), pause_(kFirstPause) {}

void Retry::progress() {
  last_ = world_.now();
  pause_ = kFirstPause;
}

bool Retry::wait(std::optional<double> retry_after) {
  const double pause = std::max(pause_ * (0.5 + world_.random()), retry_after.value_or(0));
  if (world_.now() + pause - last_ > patience_) return false;
  world_.sleep(pause);
  pause_ = std::min(2 * pause_, kLongestPause);
  ++tries_;
  return true;
}

}  // namespace vfm::io
