// SPDX-License-Identifier: Apache-2.0
#include "io/late_files.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/stopwatch.h"

namespace vfm::io {
namespace {

std::atomic<double> g_in_vain{0};  // seconds

}  // namespace

void forget_vain_waits() {
  g_in_vain = 0;
}

void look_until_seen(double seconds, const std::function<void()>& look) {
  constexpr double kFirstPause = 0.02, kLongestPause = 1;
  const Stopwatch watch;
  const double limit = seconds - g_in_vain;
  for (double pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    try {
      return look();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::runtime) throw;
      const double waited = watch.seconds();
      if (seconds > 0 && waited >= limit) {
        g_in_vain = g_in_vain + waited;
        throw Error(error.what(), Cause::disk);
      }
      if (pause == kFirstPause) log_info("{}; waiting for it", error.what());
    }
    check_stop();
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
}

}  // namespace vfm::io
