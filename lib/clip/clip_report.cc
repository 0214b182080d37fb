// SPDX-License-Identifier: Apache-2.0
#include "clip/clip_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "clip/store/store.h"
#include "io/file.h"
#include "media/colour/scaler.h"
#include "media/decode/decoder.h"
#include "shard/reader.h"

namespace vfm::clip {
namespace {

constexpr std::size_t kLines = 100, kFigures = 120, kFiguresOfVideo = 24;
constexpr int kWidth = 160;  // pixels of a picture
constexpr int kBins = 30;    // of a histogram

/// Returns a Windows bitmap, which needs no codec, and which all browsers show.
std::string bitmap(const media::RgbImage& image) {
  const std::size_t row = (3 * static_cast<std::size_t>(image.width) + 3) / 4 * 4;
  const std::size_t size = 54 + row * static_cast<std::size_t>(image.height);
  std::string out(size, '\0');
  const auto put = [&](std::size_t at, std::size_t value) {
    for (int i = 0; i < 4; ++i)
      out[at + i] = static_cast<char>(value >> (8 * i) & 255);
  };
  out[0] = 'B', out[1] = 'M', out[26] = 1, out[28] = 24;
  put(2, size), put(10, 54), put(14, 40);
  put(18, static_cast<std::size_t>(image.width)), put(22, static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* from = image.pixels.data() + static_cast<std::size_t>(3 * y) * image.width;
    char* to = out.data() + 54 + row * static_cast<std::size_t>(image.height - 1 - y);
    for (int x = 0; x < image.width; ++x)
      for (int c = 0; c < 3; ++c)
        to[3 * x + c] = static_cast<char>(from[3 * x + 2 - c]);
  }
  return out;
}

std::string middle_frame(const shard::Member& member, std::int64_t frames) {
  media::Decoder decoder(std::string_view(member.data), member.extension);
  const media::StreamInfo& info = decoder.info();
  media::Frame frame, shown;
  for (std::int64_t i = 0; i <= frames / 2 && decoder.next(frame); ++i)
    shown = frame;
  const int height = std::max(1, kWidth * info.display_height / std::max(1, info.display_width));
  media::RgbImage image;
  media::Scaler().to_rgb(
      shown, {.rotation = info.rotation, .mirror = info.mirror, .width = kWidth, .height = height},
      image);
  return bitmap(image);
}

constexpr const char *kClipColour = "#7fa8c9", *kLeftOutColour = "#e4e4e4", *kCutColour = "#222",
                     *kFadeColour = "#8a2be2", *kGradualColour = "#d2691e";

/// Returns a bar with a stroke at each change of shot. A container may begin at any time, so the
/// bar begins at `first_clip`, or at an earlier left-out part.
std::string time_line(const Json& finished, std::optional<double> first_clip) {
  const double seconds = std::max(1e-9, finished.value("seconds", 0.0));
  constexpr double kLength = 1000;
  const Json& cuts = finished.at("cuts");
  std::optional<double> first = first_clip;
  for (const Json& gap : finished.at("left_out"))
    first = std::min(first.value_or(HUGE_VAL), gap.value("begin", 0.0));
  const double start = first.value_or(0);
  const auto x = [&](double time) {
    return std::clamp((time - start) / seconds, 0.0, 1.0) * kLength;
  };
  std::string svg =
      "<svg viewBox='0 0 1000 24' width='100%' height='24' preserveAspectRatio='none'>"
      "<rect width='1000' height='24' fill='" +
      std::string(kClipColour) + "'/>";
  for (const Json& gap : finished.at("left_out"))
    svg += fmt::format(
        "<rect x='{:.1f}' width='{:.1f}' height='24' fill='{}'/>", x(gap.value("begin", 0.0)),
        std::max(0.5, x(gap.value("end", 0.0)) - x(gap.value("begin", 0.0))), kLeftOutColour);
  for (const Json& cut : cuts) {
    const std::string type = cut.value("type", "cut");
    svg +=
        fmt::format("<rect x='{:.1f}' width='2' height='24' fill='{}'/>", x(cut.value("time", 0.0)),
                    type == "cut"    ? kCutColour
                    : type == "fade" ? kFadeColour
                                     : kGradualColour);
  }
  return svg + "</svg>";
}

std::string time_line_legend() {
  std::string svg = "<svg viewBox='0 0 700 18' role='img' aria-label='colours'>";
  int x = 0;
  for (const auto& [colour, words] :
       {std::pair{kClipColour, "clip"}, std::pair{kLeftOutColour, "left out"},
        std::pair{kCutColour, "cut"}, std::pair{kFadeColour, "fade"},
        std::pair{kGradualColour, "dissolve, wipe or transition"}}) {
    svg += fmt::format(
        "<rect x='{0}' y='4' width='10' height='10' fill='{1}' stroke='currentColor' "
        "stroke-width='.5'/><text x='{2}' y='13'>{3}</text>",
        x, colour, x + 16, words);
    x += 90;
  }
  return svg + "</svg>";
}

}  // namespace

ClipReport::ClipReport(std::string path, std::string directory)
    : path_(std::move(path)), directory_(std::move(directory)), measures_(directory_) {}

void ClipReport::add(const std::string& json) {
  if (path_.empty()) return;
  const Json finished = parse_json(json, "the clip index");
  const FirstClips first = add_clips(finished);
  const auto add_video = [&](const Json& video) {
    ++videos_;
    if (!video.contains("cuts") || lines_.size() == kLines) return;
    const auto begin = first.find(video.value("source_hash", ""));
    lines_.push_back(
        time_line(video, begin != first.end() ? std::optional(begin->second) : std::nullopt));
    line_captions_.push_back(
        fmt::format("{}: {}, {}, {}", report::set_apart(video.value("source", "")),
                    format_seconds(video.value("seconds", 0.0)),
                    counted(video.at("cuts").size(), "change of shot", "changes of shot"),
                    counted(video.value("clips", std::uint64_t{0}), "clip")));
  };
  if (!finished.contains("sources")) {
    add_video(finished);
  } else {
    for (const Json& video : finished.at("sources"))
      add_video(video);
  }
}

ClipReport::FirstClips ClipReport::add_clips(const Json& finished) {
  std::size_t shown = 0;
  FirstClips first;
  for (const Json& record : ClipStore::records(finished, directory_)) {
    const std::string path = record.at("path").get<std::string>();
    shard::for_each_sample(path, [&](const shard::Sample& sample) {
      const Json facts = parse_json(*sample.find("json"), sample.key);
      const double begin = facts.value("begin", 0.0);
      double& earliest = first.try_emplace(facts.value("source_hash", ""), begin).first->second;
      earliest = std::min(earliest, begin);
      add_clip(sample, facts, shown);
    });
  }
  return first;
}

void ClipReport::add_clip(const shard::Sample& sample, const Json& facts, std::size_t& shown) {
  ++clips_;
  const std::array<double, kMeasures> values = {
      facts.value("seconds", 0.0), facts.value("motion", 0.0), facts.value("brightness", 0.0)};
  for (std::size_t i = 0; i < kMeasures; ++i)
    ranges_[i].add(values[i]);
  measures_.append({reinterpret_cast<const char*>(values.data()), sizeof values});
  if (shown == kFiguresOfVideo || figures_.size() == kFigures) return;
  ++shown;
  const std::string caption =
      facts.value("media", "") == "image"
          ? fmt::format("{} x {}", facts.value("width", 0), facts.value("height", 0))
          : fmt::format("{:.2f} s to {:.2f} s, {} to {}", facts.value("begin", 0.0),
                        facts.value("end", 0.0), facts.value("start_type", ""),
                        facts.value("end_type", ""));
  try {
    figures_.push_back(
        {report::data_url("image/bmp", middle_frame(sample.members[0], facts.value("frames", 1))),
         caption});
  } catch (const Error& error) {
    log_info("no picture of {}: {}", sample.key, error.what());
  }
}

void ClipReport::write(const std::string& incomplete) {
  if (path_.empty()) return;
  report::Page page("Clips", directory_);
  page.not_complete(incomplete);
  page.paragraph(fmt::format("{} of {}.", counted(clips_, "clip"), counted(videos_, "source")));
  if (!lines_.empty()) {
    page.heading("Shots");
    page.svg(time_line_legend(), "The colours of the time lines.");
  }
  for (std::size_t i = 0; i < lines_.size(); ++i)
    page.svg(lines_[i], line_captions_[i]);
  if (!figures_.empty()) page.heading("Clips");
  page.gallery(figures_, kWidth);
  if (clips_ > 1) {
    page.heading("Measures");
    std::vector<report::Histogram> charts;
    for (const report::AxisRange& range : ranges_)
      charts.emplace_back(range, kBins);
    for (io::ScratchReader reader(measures_); !reader.ended();) {
      std::array<double, kMeasures> values;
      std::memcpy(values.data(), reader.bytes(sizeof values).data(), sizeof values);
      for (std::size_t i = 0; i < kMeasures; ++i)
        charts[i].add(values[i]);
    }
    page.svg(charts[0].svg("seconds"), "Length of clips");
    page.svg(charts[1].svg("diagonals a frame"), "Motion");
    page.svg(charts[2].svg("0 to 1"), "Brightness");
  }
  page.write(path_);
}

}  // namespace vfm::clip
