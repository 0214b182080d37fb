// SPDX-License-Identifier: Apache-2.0
#include "cli/meter.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/harmless.h"
#include "base/units.h"

namespace vfm::cli {
namespace {

void put(const std::string& text) {
  // A closed stderr only loses the progress.
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

/// Returns the text that erases `lines` lines above the cursor, with its line.
std::string erase(int lines) {
  return "\r" + (lines > 1 ? fmt::format("\x1b[{}A\x1b[J", lines - 1) : std::string("\x1b[K"));
}

}  // namespace

Meter::Meter(std::string program, MeterStyle style, bool terminal)
    : program_(std::move(program)),
      style_(style),
      terminal_(terminal),
      begin_(Clock::now()),
      last_(begin_) {}

void Meter::start(std::string_view unit, std::uint64_t total) {
  const std::lock_guard lock(mutex_);
  unit_ = unit;
  total_ = total;
  done_ = 0;
  begin_ = Clock::now();
  if (board_) board_->start(unit);
}

void Meter::set_total(std::uint64_t total) {
  const std::lock_guard lock(mutex_);
  total_ = total;
}

void Meter::add(std::uint64_t done) {
  const std::lock_guard lock(mutex_);
  done_ += done;
  if (board_) board_->add_done(done);
  draw(false);
}

void Meter::note(std::string_view text) {
  const std::lock_guard lock(mutex_);
  note_ = harmless(text);
}

void Meter::place(std::string_view text) {
  const std::lock_guard lock(mutex_);
  place_ = harmless(text);
  if (!place_.empty()) draw(false);
}

void Meter::part(const void* item, double done) {
  const std::lock_guard lock(mutex_);
  if (done < 0)
    parts_.erase(item);
  else
    parts_[item] = done;
}

std::string Meter::text(Clock::time_point now) const {
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  double done = static_cast<double>(done_);
  for (const auto& [item, part] : parts_)
    done += part;
  const double rate = seconds > 0 ? done / seconds : 0;
  std::string line = program_ + "  " + fmt::format("{}", done_);
  if (total_ > 0) line += fmt::format("/{}", total_);
  line += fmt::format(" {}  {}/s", unit_, format_count(rate));
  if (static_cast<double>(total_) > done && rate > 0)
    line += fmt::format("  ETA {}", format_seconds((static_cast<double>(total_) - done) / rate));
  if (!note_.empty()) line += "  " + note_;
  if (!place_.empty()) line += "  " + place_;
  return line;
}

/// Returns whether it is time to draw, and counts this as drawn.
bool Meter::due(bool last) {
  if (style_ == MeterStyle::none) return false;
  const Clock::time_point now = Clock::now();
  if (!last) {
    const auto wait = style_ == MeterStyle::log ? std::chrono::milliseconds(60000)
                      : !ever_                  ? std::chrono::milliseconds(1000)
                      : terminal_               ? std::chrono::milliseconds(100)
                                                : std::chrono::milliseconds(5000);
    if (now - last_ < wait) return false;
  }
  last_ = now;
  ever_ = true;
  return true;
}

void Meter::put_lines(const std::string& lines) {
  const bool in_place = style_ == MeterStyle::line && terminal_;
  put(in_place ? erase(drawn_) + lines : lines + "\n");
  drawn_ = in_place ? 1 + static_cast<int>(std::count(lines.begin(), lines.end(), '\n')) : 0;
}

void Meter::draw(bool last) {
  if (board_ && style_ == MeterStyle::line) return;  // draw_pipe() draws.
  if (due(last)) put_lines(text(Clock::now()));
}

void Meter::watch(std::shared_ptr<share::PipeBoard> board, const std::string& share,
                  const std::string& page) {
  const bool draws = style_ == MeterStyle::line;
  {
    const std::lock_guard lock(mutex_);
    board_ = std::move(board);
    board_->set_draws(draws);
  }
  if (!draws && page.empty()) return;
  view_ =
      std::make_unique<PipeView>(board_, share,
                                 draws ? [this](const share::PipeLook& look) { draw_pipe(look); }
                                       : std::function<void(const share::PipeLook&)>(),
                                 page);
}

void Meter::end_watch() {
  const std::unique_ptr<PipeView> view = std::move(view_);
  if (view) view->finish();
}

/// Draws only if this program is the last one alive that draws.
void Meter::draw_pipe(const share::PipeLook& look) {
  const share::StageState* last = nullptr;
  for (const share::StageLook& stage : look.stages)
    if (stage.state.alive && stage.state.draws) last = &stage.state;
  const std::lock_guard lock(mutex_);
  shown_ = look;
  if (last && last->self && due(false)) put_lines(pipe_text());
}

std::string Meter::pipe_text() const {
  int width = 0;
  if (winsize size{}; terminal_ && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0)
    width = size.ws_col > 0 ? size.ws_col - 1 : 0;
  std::string text;
  for (const std::string& line : share::pipe_lines(shown_, width))
    text += (text.empty() ? "" : "\n") + line;
  return text;
}

void Meter::clear() {
  const std::lock_guard lock(mutex_);
  if (drawn_ == 0) return;
  put(erase(drawn_));
  drawn_ = 0;
}

void Meter::finish() {
  // Ends the view if the tool has thrown. Before the lock, which the view's thread may need.
  view_.reset();
  const std::lock_guard lock(mutex_);
  if (!ever_) return;  // The run took less than a second.
  if (board_ && style_ == MeterStyle::line)
    put_lines(pipe_text());
  else
    draw(true);
  if (drawn_ > 0) put("\n");
  drawn_ = 0;
}

}  // namespace vfm::cli
