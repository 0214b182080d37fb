// SPDX-License-Identifier: Apache-2.0
#include "clip/lists/shot_lists.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
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

constexpr std::int64_t kMostEdlRate = 100;  // frames 00 to 99

std::int64_t edl_rate(Rational frame_rate) {
  return std::max(1L, std::lround(frame_rate.value()));
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

/// Replaces control characters, so that a name cannot begin another line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

/// Returns a path or URL as a URL. Bytes that URLs do not allow become %XX.
std::string url_of(const std::string& path) {
  const bool address = io::is_url(path);
  const std::string_view plain = address ? "-._~/:?#[]@!$&'()*+,;=%" : "-._~/";
  std::string url = address ? "" : path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || plain.find(c) != std::string_view::npos)
      url += c;
    else
      url += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return url;
}

/// The rate of OpenTimelineIO's times. They count frames if `frames` is true, otherwise ticks.
struct Clock {
  double rate = 1;
  bool frames = false;

  Json time(std::int64_t frame, std::int64_t tick) const {
    return {{"OTIO_SCHEMA", "RationalTime.1"},
            {"rate", rate},
            {"value", static_cast<double>(frames ? frame : tick)}};
  }
  Json range(const Shot& from, const Shot& to) const {
    return {{"OTIO_SCHEMA", "TimeRange.1"},
            {"start_time", time(from.frame_begin, from.tick_begin)},
            {"duration", time(to.frame_end - from.frame_begin, to.tick_end - from.tick_begin)}};
  }
};

Clock clock_of(const ShotsOfVideo& video) {
  const double rate = video.frame_rate.value(), tick = video.time_base.value();
  const auto counts = [&](std::int64_t frame, std::int64_t ticks) {
    return std::abs(static_cast<double>(frame) / rate - static_cast<double>(ticks) * tick) <=
           tick * (1 + 1e-6);
  };
  const bool constant =
      rate > 0 && std::all_of(video.shots.begin(), video.shots.end(), [&](const Shot& s) {
        return counts(s.frame_begin, s.tick_begin) && counts(s.frame_end, s.tick_end);
      });
  return constant ? Clock{rate, true} : Clock{1 / tick, false};
}

/// Returns a value of FFmpeg's metadata in one line, with special characters escaped.
std::string metadata_value(const std::string& text) {
  std::string value;
  for (const char c : one_line(text)) {
    if (std::string_view("=;#\\").find(c) != std::string_view::npos) value += '\\';
    value += c;
  }
  return value;
}

}  // namespace

Json change_json(const curate::ShotChange& change, std::int64_t pts, Rational time_base) {
  return {{"frame", change.frame},
          {"pts", pts},
          {"time", six_digits(static_cast<double>(pts) * time_base.value())},
          {"type", curate::name_of(change.type)},
          {"score", six_digits(change.score)}};
}

std::string shots_table(const Json& record) {
  const Json& cuts = record.at("cuts");
  std::string text = one_line(record.at("path").get<std::string>());
  if (record.contains("threshold"))
    text += fmt::format(", threshold {}", record.at("threshold").get<double>());
  text += fmt::format(
      ": {} in {} frames\n",
      cuts.size() == 1 ? "1 change of shot" : fmt::format("{} changes of shot", cuts.size()),
      record.at("frames").get<std::int64_t>());
  if (!cuts.empty()) text += fmt::format("{:>14}  {:>8}  {:10}  score\n", "time", "frame", "kind");
  for (const Json& cut : cuts)
    text += fmt::format("{:>14}  {:>8}  {:10}  {:5.2f}\n", clock_text(cut.at("time").get<double>()),
                        cut.at("frame").get<std::int64_t>(), cut.at("type").get<std::string>(),
                        cut.at("score").get<double>());
  return text;
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

void ShotsEdl::check_rate(const std::string& path, Rational frame_rate) {
  if (edl_rate(frame_rate) > kMostEdlRate)
    fail(
        "'{}': the timecodes of an edit decision list count at most {} frames a second, and it has "
        "{:.6g}; take --format otio, csv or json",
        path, kMostEdlRate, frame_rate.value());
}

std::string ShotsEdl::header() const {
  return "TITLE: vfm-clip\nFCM: NON-DROP FRAME\n";
}

std::string ShotsEdl::add(const ShotsOfVideo& video) {
  const std::int64_t rate = edl_rate(video.frame_rate);
  if (!video.shots.empty() && !clock_of(video).frames)
    log_warning(
        "'{}' has no constant frame rate: the timecodes of its edit decision list count frames at "
        "{} a second, and are not its times; take --format otio, csv or json",
        video.path, rate);
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

std::string ShotsTimeline::header() const {
  return R"({"OTIO_SCHEMA":"Timeline.1","name":"vfm-clip","global_start_time":null,"metadata":{},)"
         R"("tracks":{"OTIO_SCHEMA":"Stack.1","name":"tracks","source_range":null,"effects":[],)"
         R"("markers":[],"metadata":{},"children":[{"OTIO_SCHEMA":"Track.1","name":"V1",)"
         R"("kind":"Video","source_range":null,"effects":[],"markers":[],"metadata":{},)"
         R"("children":[)";
}

std::string ShotsTimeline::add(const ShotsOfVideo& video) {
  if (video.shots.empty()) return {};
  const Clock clock = clock_of(video);
  const Json file = {{"OTIO_SCHEMA", "ExternalReference.1"},
                     {"name", io::base_name(video.path)},
                     {"target_url", url_of(video.path)},
                     {"available_range", clock.range(video.shots.front(), video.shots.back())},
                     {"metadata", Json::object()}};
  std::string text;
  for (std::size_t i = 0; i < video.shots.size(); ++i) {
    const Shot& s = video.shots[i];
    const Json clip = {
        {"OTIO_SCHEMA", "Clip.1"},
        {"name", fmt::format("{} {}", io::base_name(video.path), i + 1)},
        {"source_range", clock.range(s, s)},
        {"media_reference", file},
        {"effects", Json::array()},
        {"markers", Json::array()},
        {"metadata",
         {{"vfm", {{"start_type", s.start_type}, {"start_score", six_digits(s.start_score)}}}}}};
    text += (any_ ? ",\n" : "\n") + dump_json(clip);
    any_ = true;
  }
  return text;
}

std::string ShotsTimeline::footer() const {
  return "\n]}]}}\n";
}

std::string ShotsChapters::header() const {
  return ";FFMETADATA1\n";
}

std::string ShotsChapters::add(const ShotsOfVideo& video) {
  if (video.shots.empty()) return {};
  const Rational base = video.time_base;
  const std::int64_t offset = std::llround(seconds_ / base.value()) + video.lead;
  std::string text;
  for (std::size_t i = 0; i < video.shots.size(); ++i) {
    const Shot& s = video.shots[i];
    text += fmt::format("[CHAPTER]\nTIMEBASE={}/{}\nSTART={}\nEND={}\ntitle={} {}\n", base.num,
                        base.den, offset + s.tick_begin, offset + s.tick_end,
                        metadata_value(io::base_name(video.path)), i + 1);
  }
  seconds_ += static_cast<double>(video.lead + video.shots.back().tick_end) * base.value();
  return text;
}

}  // namespace vfm::clip
