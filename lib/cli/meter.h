// Progress on stderr: "vfm-clip  120/1000 clips  14.2/s  ETA 1m02s", then the texts of note() and
// place(). If several programs share slots (VFM_SHARE), one of them draws a line for each program,
// and the other programs draw nothing (share/pipe_look.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/progress.h"
#include "cli/pipe_view.h"
#include "share/pipe_board.h"
#include "share/pipe_look.h"

namespace vfm::cli {

/// `line` draws one line, which is rewritten in place on a terminal. `log` draws a full line each
/// minute. `none` draws nothing, and only counts for the board (share/pipe_board.h).
enum class MeterStyle { none, line, log };

/// A Progress that draws nothing in the first second, and then at most ten times a second.
/// Thread-safe.
class Meter : public Progress {
 public:
  Meter(std::string program, MeterStyle style, bool terminal);

  void start(std::string_view unit, std::uint64_t total) override;
  void set_total(std::uint64_t total) override;
  void add(std::uint64_t done) override;
  void note(std::string_view text) override;
  void place(std::string_view text) override;
  void part(const void* item, double done) override;

  /// Makes the meter also write its counts to `board` (share/pipe_board.h). With MeterStyle::line
  /// the meter then draws a line for each program of the board. `share` is the board's file. `page`
  /// is the path of an HTML page about the programs, or "". Call watch() once, before start().
  void watch(std::shared_ptr<share::PipeBoard> board, const std::string& share,
             const std::string& page);
  /// Stops drawing the programs of the board, and writes the HTML page given to watch() a last
  /// time. Throws Error.
  void end_watch();

  /// Erases the drawn lines, so that a message can be printed; the next update draws them again.
  void clear();
  /// Draws the last state and ends the line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(bool last);
  void draw_pipe(const share::PipeLook& look);
  void put_lines(const std::string& lines);
  bool due(bool last);
  std::string pipe_text() const;
  std::string text(Clock::time_point now) const;

  std::mutex mutex_;
  std::string program_, unit_, note_, place_;
  MeterStyle style_;
  bool terminal_, ever_ = false;
  int drawn_ = 0;  // number of lines that can be erased
  std::uint64_t done_ = 0, total_ = 0;
  std::map<const void*, double> parts_;  // finished parts of unfinished items
  Clock::time_point begin_, last_;
  std::shared_ptr<share::PipeBoard> board_;
  share::PipeLook shown_;
  std::unique_ptr<PipeView> view_;  // calls draw_pipe()
};

}  // namespace vfm::cli
