// SPDX-License-Identifier: Apache-2.0
#include "generate/files/contact_sheet.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/atomic_file.h"
#include "media/colour/scaler.h"
#include "media/container/picture_file.h"
#include "media/decode/decoder.h"

namespace vfm::generate {

namespace {

constexpr int kFrames = 3, kFrameGap = 2, kClipGap = 10;
constexpr int kLongSide = 128;  // of a frame on the sheet
constexpr std::uint8_t kPaper = 250;

/// First, middle and last frame, the longer side kLongSide; fewer for a shorter clip.
std::vector<media::RgbImage> sample_frames(const std::string& path) {
  media::Decoder decoder(path);
  std::vector<media::Frame> frames;
  media::Frame frame;
  while (decoder.next(frame))
    frames.push_back(media::copy_frame(frame));
  if (frames.empty()) fail("no frames");
  const media::Frame& first = frames.front();
  const double scale = static_cast<double>(kLongSide) / std::max(first.width, first.height);
  media::ScaleOptions options;
  options.width = std::max(1, static_cast<int>(std::lround(first.width * scale)));
  options.height = std::max(1, static_cast<int>(std::lround(first.height * scale)));
  media::Scaler scaler;
  std::vector<media::RgbImage> pictures;
  const std::size_t shown = std::min<std::size_t>(kFrames, frames.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t at = shown == 1 ? 0 : i * (frames.size() - 1) / (shown - 1);
    scaler.to_rgb(frames[at], options, pictures.emplace_back());
  }
  return pictures;
}

void paste(const media::RgbImage& picture, media::RgbImage& sheet, int left, int top) {
  for (int row = 0; row < picture.height; ++row) {
    const auto* from = picture.pixels.data() + std::size_t{3} * row * picture.width;
    auto* to = sheet.pixels.data() + std::size_t{3} * ((top + row) * sheet.width + left);
    std::copy(from, from + std::size_t{3} * picture.width, to);
  }
}

media::RgbImage contact_sheet(const std::vector<std::string>& clips) {
  std::vector<std::vector<media::RgbImage>> strips;
  int cell_width = kLongSide, cell_height = 1;
  for (std::size_t i = 0; i < std::min(kShownClips, clips.size()); ++i) {
    check_stop();
    auto& strip = strips.emplace_back();
    try {
      strip = sample_frames(clips[i]);
    } catch (const Error& error) {
      log_warning("'{}' is left out of the contact sheet: {}", clips[i], error.what());
    }
    for (const auto& picture : strip) {
      cell_width = std::max(cell_width, kFrames * (picture.width + kFrameGap) - kFrameGap);
      cell_height = std::max(cell_height, picture.height);
    }
  }
  const int count = std::max(1, static_cast<int>(strips.size()));
  const double ratio = static_cast<double>(cell_height + kClipGap) / (cell_width + kClipGap);
  const int columns = std::clamp(static_cast<int>(std::lround(std::sqrt(count * ratio))), 1, count);
  const int rows = (count + columns - 1) / columns;
  media::RgbImage sheet;
  sheet.width = kClipGap + columns * (cell_width + kClipGap);
  sheet.height = kClipGap + rows * (cell_height + kClipGap);
  sheet.pixels.assign(std::size_t{3} * sheet.width * sheet.height, kPaper);
  for (std::size_t i = 0; i < strips.size(); ++i) {
    int left = kClipGap + static_cast<int>(i) % columns * (cell_width + kClipGap);
    const int top = kClipGap + static_cast<int>(i) / columns * (cell_height + kClipGap);
    for (const auto& picture : strips[i]) {
      paste(picture, sheet, left, top);
      left += picture.width + kFrameGap;
    }
  }
  return sheet;
}

}  // namespace

void write_contact_sheet(const std::string& path, const std::vector<std::string>& clips) {
  io::update_file(path, media::encode_png(contact_sheet(clips)));
}

}  // namespace vfm::generate
