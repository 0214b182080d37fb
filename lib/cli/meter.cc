// SPDX-License-Identifier: Apache-2.0
#include "cli/meter.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/harmless.h"

namespace vfm::cli {
namespace {

void put(const std::string& text) {
  // Progress is not worth an error: a closed stderr just loses it.
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
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
}

void Meter::set_total(std::uint64_t total) {
  const std::lock_guard lock(mutex_);
  total_ = total;
}

void Meter::add(std::uint64_t done) {
  const std::lock_guard lock(mutex_);
  done_ += done;
  draw(false);
}

void Meter::note(std::string_view text) {
  const std::lock_guard lock(mutex_);
  note_ = harmless(text);
}

void Meter::place(std::string_view text) {
  const std::lock_guard lock(mutex_);
  place_ = text;
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

void Meter::draw(bool last) {
  const Clock::time_point now = Clock::now();
  if (!last) {
    const auto wait = style_ == MeterStyle::log ? std::chrono::milliseconds(60000)
                      : !ever_                  ? std::chrono::milliseconds(1000)
                      : terminal_               ? std::chrono::milliseconds(100)
                                                : std::chrono::milliseconds(5000);
    if (now - last_ < wait) return;
  }
  last_ = now;
  ever_ = true;
  const bool in_place = style_ == MeterStyle::line && terminal_;
  put(in_place ? "\r\x1b[K" + text(now) : text(now) + "\n");
  drawn_ = in_place;
}

void Meter::clear() {
  const std::lock_guard lock(mutex_);
  if (!drawn_) return;
  put("\r\x1b[K");
  drawn_ = false;
}

void Meter::finish() {
  const std::lock_guard lock(mutex_);
  if (!ever_) return;  // it was over within a second: nothing was drawn
  draw(true);
  if (drawn_) put("\n");
  drawn_ = false;
}

}  // namespace vfm::cli
