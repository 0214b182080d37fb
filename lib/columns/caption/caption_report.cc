// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/caption_report.h"

#include <algorithm>
#include <optional>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "columns/embed/glimpse.h"
#include "media/colour/scaler.h"
#include "media/decode/decoder.h"
#include "media/encode/encoder.h"
#include "shard/columns.h"
#include "shard/media_members.h"
#include "shard/reader.h"
#include "text/unicode.h"

namespace vfm::columns {
namespace {

constexpr std::size_t kFigures = 48, kFiguresOfShard = 12;
constexpr std::size_t kLongestCaption = 300;  // characters under a picture
constexpr int kWidth = 160;
constexpr std::int64_t kPreviewFrames = 48;

/// Returns a small and short copy of the clip, because a page has dozens of clips.
std::string preview(const shard::Member& member) {
  media::Decoder decoder(std::string_view(member.data), member.extension);
  const media::StreamInfo info = decoder.info();
  const double shrink = std::min(1.0, double{kWidth} / std::max(1, info.display_width));
  const auto even = [&](int size) { return std::max(2, static_cast<int>(size * shrink) & ~1); };
  const media::ScaleOptions size{.rotation = info.rotation,
                                 .mirror = info.mirror,
                                 .width = even(info.display_width),
                                 .height = even(info.display_height)};
  const bool timed = info.frame_rate.num > 0;
  media::EncodeOptions encode{.quality = 28, .width = size.width, .height = size.height};
  encode.frame_rate = timed ? info.frame_rate : Rational{1, 1};
  encode.time_base = {encode.frame_rate.den, encode.frame_rate.num};
  media::VideoEncoder encoder(encode);
  media::Scaler scaler;
  media::RgbImage image;
  media::Frame frame;
  for (std::int64_t n = 0; n < kPreviewFrames && decoder.next(frame); ++n) {
    scaler.to_rgb(frame, size, image);
    encoder.add(image, n);
  }
  return encoder.finish();
}

}  // namespace

void CaptionReport::add(const io::Record& record) {
  if (path_.empty()) return;
  if (of_.empty()) of_ = io::dir_name(record.path());
  cut_ += get_integer(record.json, "caption_cut").value_or(0);
  shard::JoinedReader captions({record.json->at("columns").at("caption").get<std::string>()});
  shard::Sample sample;
  while (captions.next(sample)) {
    const std::string* json = sample.find("json");
    const std::string* txt = sample.find("txt");
    if (!json || !txt) continue;
    ++sources_[get_string(parse_json(*json, sample.key), "caption_source").value_or("unknown")];
    words_.push_back(static_cast<double>(text::words(*txt, 10'000).size()));
  }
  add_figures(record);
}

void CaptionReport::add_figures(const io::Record& record) {
  shard::JoinedReader reader(io::column_tars(record));
  shard::Sample sample;
  for (std::size_t n = 0; n < kFiguresOfShard && figures_.size() < kFigures; ++n) {
    if (!reader.next(sample)) return;
    const shard::Member* member = shard::media_member(sample);
    const std::string* caption = sample.find("txt");
    if (!member || !caption) continue;
    try {
      figures_.push_back({report::data_url("video/mp4", preview(*member)),
                          text::first_characters(*caption, kLongestCaption), true});
    } catch (const Error& error) {
      log_info("no preview of {}: {}", sample.key, error.what());
    }
  }
}

void CaptionReport::write(const std::string& incomplete) const {
  if (path_.empty()) return;
  report::Page page("Captions", of_);
  page.not_complete(incomplete);
  page.paragraph(counted(words_.size(), "sample") + ".");
  if (cut_ > 0)
    page.paragraph(
        fmt::format("{} texts of models were cut: they reached their most tokens.", cut_));
  std::vector<std::vector<std::string>> rows;
  for (const auto& [source, samples] : sources_)
    rows.push_back({source, std::to_string(samples)});
  page.table({"source", "samples"}, rows);
  page.heading("Samples");
  page.gallery(figures_, kWidth);
  if (!words_.empty())
    page.svg(report::histogram(words_, 20, "words in a caption"), "length of the captions");
  page.write(path_);
}

}  // namespace vfm::columns
