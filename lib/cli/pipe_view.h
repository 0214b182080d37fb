// At regular intervals, reads the state of all programs that share slots, and makes PipeLooks
// (share/pipe_look.h) for --progress and for the HTML page of VFM_SHARE_REPORT.
//
// A PipeView has its own thread and bounded memory.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "share/gpu_states.h"
#include "share/pipe_board.h"
#include "share/pipe_look.h"

namespace vfm::report {
class Page;
}

namespace vfm::cli {

class PipeView {
 public:
  /// Starts the thread, which calls `show` with each PipeLook. `show` may be empty. `share` is the
  /// board's file. `page` is the path of an HTML page, or "". The page is written every few seconds
  /// and at the end.
  PipeView(std::shared_ptr<share::PipeBoard> board, const std::string& share,
           std::function<void(const share::PipeLook&)> show, std::string page);
  ~PipeView();
  PipeView(const PipeView&) = delete;
  PipeView& operator=(const PipeView&) = delete;

  /// Ends the thread, calls `show` with a PipeLook over the whole run, and writes the page a last
  /// time. Throws Error if the page cannot be written.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  struct Kept {
    double seconds;  // seconds since the begin
    share::PipeLook look;
  };
  void watch();
  share::PipeLook look();
  void keep(const share::PipeLook& look);
  share::PipeLook whole_run() const;
  std::vector<std::pair<std::string, double>> bottlenecks() const;
  double seconds() const { return std::chrono::duration<double>(last_ - begin_).count(); }
  void write_page() const;
  void write_gpus(report::Page& page) const;

  const std::shared_ptr<share::PipeBoard> board_;
  const std::function<void(const share::PipeLook&)> show_;
  const std::string page_;
  const Clock::time_point begin_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable end_;
  bool ending_ = false;  // guarded by mutex_

  // Used by the view's thread, then by finish().
  Clock::time_point last_ = begin_;
  std::vector<share::StageState> first_, before_;
  share::GpuWatch watch_;
  share::GpuStates first_gpus_, gpus_;  // states of the GPUs, like first_ and before_
  std::vector<Kept> kept_;
  std::size_t every_ = 1, looks_ = 0;  // of each `every_` looks, one is kept
  /// For each process id: the program's name, and the seconds in which the program was the
  /// bottleneck. Process id 0 has the time without a bottleneck.
  std::map<std::int64_t, std::pair<std::string, double>> bottleneck_seconds_;
  std::thread thread_;
};

}  // namespace vfm::cli
