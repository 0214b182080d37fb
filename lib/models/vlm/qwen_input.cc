// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen_input.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"

namespace vfm::models {
namespace {

constexpr std::int64_t kVideoTokens = 115'200;  // 90 % of 128,000
constexpr std::int64_t kLeastFrames = 4, kMostFrames = 768;
constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

constexpr const char* kQwenKnown[] = {"patch_size", "temporal_patch_size", "merge_size",
                                      "min_pixels", "max_pixels",          "image_processor"};

/// As Python's round(): half to even.
std::int64_t multiple(double value, int factor) {
  return static_cast<std::int64_t>(std::nearbyint(value / factor)) * factor;
}

std::int64_t down(double value, std::int64_t factor) {
  return static_cast<std::int64_t>(std::floor(value / static_cast<double>(factor))) * factor;
}

}  // namespace

PictureSize smart_resize(PictureSize picture, int factor, std::int64_t least, std::int64_t most) {
  const double height = picture.height, width = picture.width;
  if (picture.height < 1 || picture.width < 1) fail("an empty picture");
  if (std::max(height, width) / std::min(height, width) > 200)
    fail("a picture of {}x{} is over 200 times as long as wide", picture.width, picture.height);
  std::int64_t h = multiple(height, factor), w = multiple(width, factor);
  if (h * w > most) {
    const double scale = std::sqrt(height * width / static_cast<double>(most));
    h = std::max<std::int64_t>(factor, down(height / scale, factor));
    w = std::max<std::int64_t>(factor, down(width / scale, factor));
  } else if (h * w < least) {
    const double scale = std::sqrt(static_cast<double>(least) / (height * width));
    h = static_cast<std::int64_t>(std::ceil(height * scale / factor)) * factor;
    w = static_cast<std::int64_t>(std::ceil(width * scale / factor)) * factor;
  }
  return {static_cast<int>(h), static_cast<int>(w)};
}

std::vector<std::int64_t> qwen_frames(std::int64_t frames, double rate, double fps, int pair) {
  std::vector<std::int64_t> taken;
  if (frames < pair) {
    for (std::int64_t i = 0; i < frames; ++i)
      taken.push_back(i);
    return taken;
  }
  const std::int64_t least = (kLeastFrames + pair - 1) / pair * pair;
  const std::int64_t most = std::min(kMostFrames, frames) / pair * pair;
  double count = static_cast<double>(frames) / rate * fps;
  count = std::min(std::max(count, static_cast<double>(least)), static_cast<double>(most));
  const std::int64_t n = std::max<std::int64_t>(pair, down(count, pair));
  for (std::int64_t i = 0; i < n; ++i)
    taken.push_back(n == 1 ? 0
                           : std::llrint(static_cast<double>(i) * static_cast<double>(frames - 1) /
                                         static_cast<double>(n - 1)));
  return taken;
}

QwenInput QwenInput::from_json(const Json& config, const QwenVisionConfig& vision,
                               std::string_view what) {
  return as_usage([&] {
    QwenInput input;
    input.vision = vision;
    input.pixels.read(config, kQwenKnown, what);
    std::string type = get_string(config, "image_processor_type").value_or("Qwen2VLImageProcessor");
    if (!type.starts_with("Qwen2VLImageProcessor") && !type.starts_with("Qwen2_5_VLImageProcessor"))
      fail_usage("{}: \"image_processor_type\" is '{}', not Qwen2VLImageProcessor", what, type);
    const auto same = [&](const char* name, int value) {
      if (get_integer(config, name).value_or(value) != value)
        fail_usage("{}: \"{}\" is not the model's, {}", what, name, value);
    };
    same("patch_size", vision.patch);
    same("temporal_patch_size", vision.temporal_patch);
    same("merge_size", vision.merge);
    if (const auto size = config.find("size"); size != config.end() && size->is_object()) {
      input.least = get_integer(*size, "shortest_edge").value_or(input.least);
      input.most = get_integer(*size, "longest_edge").value_or(input.most);
    }
    input.least = get_integer(config, "min_pixels").value_or(input.least);
    input.most = get_integer(config, "max_pixels").value_or(input.most);
    if (input.least < 1 || input.most < input.least || input.most > kMostPixels)
      fail_usage("{}: pictures of {} to {} pixels", what, input.least, input.most);
    return input;
  });
}

QwenInput QwenInput::from_folder(const std::string& folder, const QwenVisionConfig& vision) {
  std::string what;
  const Json config = picture_processor(folder, what);
  return from_json(config, vision, what);
}

Json QwenInput::to_json() const {
  Json json = pixels.to_json();
  json["pixels"] = {least, most};
  json["frame_tokens"] = frame_tokens;
  return json;
}

PictureSize QwenInput::size(PictureSize picture, std::size_t frames) const {
  const int side = vision.patch * vision.merge;
  if (frames == 0) return smart_resize(picture, side, least, most);
  const std::int64_t token = std::int64_t{side} * side;
  const std::int64_t few = std::min(kLeastFrameTokens, frame_tokens) * token;
  const std::int64_t share =
      kVideoTokens * token * vision.temporal_patch / static_cast<std::int64_t>(frames);
  const std::int64_t many = std::max(std::min(frame_tokens * token, share),
                                     static_cast<std::int64_t>(static_cast<double>(few) * 1.05));
  return smart_resize(picture, side, few, many);
}

std::int64_t QwenInput::tokens(PictureSize size, std::int64_t frames) const {
  const int side = vision.patch * vision.merge, pair = vision.temporal_patch;
  return (frames + pair - 1) / pair * (size.height / side) * (size.width / side);
}

std::vector<std::uint8_t> QwenInput::prepare(const PictureView& picture, std::size_t frames) const {
  const PictureSize to = size({picture.height, picture.width}, frames);
  return resize_picture(picture, to.width, to.height, pixels.resample, {0, 0, to.width, to.height});
}

QwenPicture QwenInput::patches(std::span<const std::vector<std::uint8_t>> frames, PictureSize to,
                               bool still, double seconds) const {
  const int pair = vision.temporal_patch, p = vision.patch, merge = vision.merge;
  if (frames.empty()) fail("nothing is seen");
  const std::size_t bytes =
      3 * static_cast<std::size_t>(to.height) * static_cast<std::size_t>(to.width);
  for (const std::vector<std::uint8_t>& frame : frames)
    if (frame.size() != bytes) fail("a frame is not {}x{}", to.width, to.height);
  QwenPicture picture;
  picture.sight.still = still;
  picture.sight.seconds = seconds;
  picture.sight.grid = {(static_cast<int>(frames.size()) + pair - 1) / pair, to.height / p,
                        to.width / p};
  const QwenGrid& grid = picture.sight.grid;
  picture.patches = Tensor({grid.patches(), vision.patch_elements()});
  const auto number = pixels.numbers();
  const std::int64_t across = grid.columns / merge,
                     of_frame = std::int64_t{grid.rows} * grid.columns;
  float* out = picture.patches.data<float>();
  for (std::int64_t n = 0; n < grid.patches(); ++n) {
    const std::int64_t place = n % of_frame, token = place / (merge * merge);
    const std::int64_t inner = place % (merge * merge);
    const std::int64_t row = token / across * merge + inner / merge;
    const std::int64_t column = token % across * merge + inner % merge;
    for (std::size_t channel = 0; channel < 3; ++channel)
      for (int f = 0; f < pair; ++f) {
        const std::size_t frame = static_cast<std::size_t>(n / of_frame * pair + f);
        const std::uint8_t* rgb = frames[std::min(frame, frames.size() - 1)].data();
        for (int y = 0; y < p; ++y)
          for (int x = 0; x < p; ++x)
            *out++ = number[channel][rgb[3 * ((row * p + y) * to.width + column * p + x) +
                                         static_cast<std::int64_t>(channel)]];
      }
  }
  return picture;
}

}  // namespace vfm::models
