// Made processors of tests/bench/made_stage.cc: programs that name the same file share them evenly
// over all items at work, as a system shares its processors over threads. Items only sleep, so a
// machine with two processors can show what sixteen do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "made_log.h"
#include "share/channel.h"

namespace vfm {

class MadeCores {
 public:
  /// FILE:COUNT[:OTHERS], or "" for none: of threads of other programs so many compute all the
  /// time.
  void open(const std::string& text) {
    if (text.empty()) return;
    const std::vector<std::string> parts = CLI::detail::split(text, ':');
    if (parts.size() < 2) fail_usage("--cores {}: FILE:COUNT[:OTHERS]", text);
    count_ = std::stoi(parts[1]);
    others_ = parts.size() > 2 ? std::stoi(parts[2]) : 0;
    const share::Descriptor file(::open(parts[0].c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (file.get() < 0 || ::ftruncate(file.get(), sizeof(std::atomic<int>)) != 0)
      fail_errno(errno, "cannot open '{}'", parts[0]);
    memory_ = share::MappedMemory(file.get(), sizeof(std::atomic<int>), true);
  }
  explicit operator bool() const { return memory_.data() != nullptr; }

  /// An item that takes so long on a processor of its own.
  void work(double seconds) {
    constexpr double kTurn = 0.004;
    auto& working = *reinterpret_cast<std::atomic<int>*>(memory_.data());
    ++working;
    double before = clock_seconds();
    while (seconds > 0) {
      const double rate = std::min(1.0, static_cast<double>(count_) / (working + others_));
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(kTurn, seconds / rate)));
      const double now = clock_seconds();
      seconds -= rate * (now - before);
      before = now;
    }
    --working;
  }

 private:
  share::MappedMemory memory_;
  int count_ = 0, others_ = 0;
};

}  // namespace vfm
