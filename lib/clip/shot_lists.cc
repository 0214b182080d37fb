// SPDX-License-Identifier: Apache-2.0
#include "clip/shot_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "io/file.h"

namespace vfm::clip {
namespace {

std::string clock_text(double seconds) {
  const long long ms = std::llround(std::max(0.0, seconds) * 1000);
  return fmt::format("{:02}:{:02}:{:02}.{:03}", ms / 3600000, ms / 60000 % 60, ms / 1000 % 60,
                     ms % 1000);
}

std::string timecode(std::int64_t frame, std::int64_t rate) {
  const std::int64_t seconds = frame / rate;
  return fmt::format("{:02}:{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60,
                     frame % rate);
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + "\"";
}

/// A line's worth: nothing that a name holds begins another line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  return text;
}

}  // namespace

Json change_json(const curate::ShotChange& change, std::int64_t pts, Rational time_base) {
  return {{"frame", change.frame},
          {"pts", pts},
          {"time", six_digits(static_cast<double>(pts) * time_base.value())},
          {"type", curate::name_of(change.type)},
          {"score", six_digits(change.score)}};
}

std::string shots_csv_header() {
  return "Scene Number,Start Frame,Start Timecode,Start Time (seconds),End Frame,End Timecode,"
         "End Time (seconds),Length (frames),Length (timecode),Length (seconds),Source\n";
}

std::string shots_csv(const ShotsOfVideo& video) {
  std::string text;
  int number = 0;
  for (const Shot& s : video.shots)
    text +=
        fmt::format("{},{},{},{:.6f},{},{},{:.6f},{},{},{:.6f},{}\n", ++number, s.frame_begin + 1,
                    clock_text(s.begin), s.begin, s.frame_end, clock_text(s.end), s.end,
                    s.frame_end - s.frame_begin, clock_text(s.end - s.begin), s.end - s.begin,
                    csv_cell(one_line(video.path)));
  return text;
}

std::string ShotsEdl::header() const {
  return "TITLE: vfm-clip\nFCM: NON-DROP FRAME\n";
}

std::string ShotsEdl::add(const ShotsOfVideo& video) {
  const std::int64_t rate = std::max(1L, std::lround(video.frame_rate.value()));
  std::string text;
  for (const Shot& s : video.shots) {
    const std::int64_t at = seconds_ * rate;
    text += fmt::format("\n{:03}  AX       V     C        {} {} {} {}\n", ++events_,
                        timecode(s.frame_begin, rate), timecode(s.frame_end, rate),
                        timecode(at + s.frame_begin, rate), timecode(at + s.frame_end, rate));
    text += fmt::format("* FROM CLIP NAME: {}\n* SOURCE FILE: {}\n",
                        one_line(io::base_name(video.path)), one_line(video.path));
  }
  if (!video.shots.empty()) seconds_ += (video.shots.back().frame_end + rate - 1) / rate;
  return text;
}

}  // namespace vfm::clip
