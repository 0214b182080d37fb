// When a failed request is sent again: after a pause that doubles and has a random part, or after
// the time that the server asks for, until nothing has come for VFM_NET_SECONDS.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <optional>

namespace vfm::io {

/// Returns whether a request that was answered with this status may succeed another time.
bool may_succeed_later(int status);

class Retry {
 public:
  /// What tells the time in seconds, waits, and draws a number from 0 to 1. Tests have their own.
  struct World {
    std::function<double()> now;
    std::function<void(double)> sleep;
    std::function<double()> random;
  };

  /// Gives up if a try failed and the next could only begin `patience` seconds after the last
  /// progress. If `cancelled` becomes true, wait() throws Stopped.
  explicit Retry(double patience, const std::atomic<bool>* cancelled = nullptr);
  Retry(double patience, World world);

  /// Call it when bytes came that need not come again.
  void progress();
  /// Waits before the next try, and returns true. Returns false if it is time to give up. Throws
  /// Stopped.
  bool wait(std::optional<double> retry_after = std::nullopt);
  int tries() const { return tries_; }

 private:
  double patience_;
  World world_;
  double last_ = 0, pause_;
  int tries_ = 1;
};

}  // namespace vfm::io
