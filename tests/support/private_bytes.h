// What this process has in memory and in no file: anonymous pages, and those that it wrote to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

// Sanitizers have memory of their own, and take long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VFM_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VFM_SLOW 1
#endif
#endif

namespace vfm {

inline double private_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  double kib = 0;
  for (std::string line; std::getline(file, line);)
    for (const char* name : {"Private_Dirty:", "Swap:"})
      if (line.starts_with(name)) kib += std::stod(line.substr(std::string(name).size()));
  return 1024 * kib;
}

/// The most of it since it was made, looked at a hundred times a second.
class PrivatePeak {
 public:
  PrivatePeak() : watch_([this] { look(); }) {}
  ~PrivatePeak() { stop(); }
  double most() {
    stop();
    return most_;
  }

 private:
  void look() {
    while (!stopped_) {
      most_ = std::max(most_, private_bytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  void stop() {
    stopped_ = true;
    if (watch_.joinable()) watch_.join();
  }
  double most_ = 0;
  std::atomic<bool> stopped_ = false;
  std::thread watch_;  // last: it uses the others
};

}  // namespace vfm
