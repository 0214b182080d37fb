// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/smol_input.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "models/encoder/encoder_folder.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {
namespace {

constexpr int kLongestPicture = 4096, kLargestTile = 2048, kMostTilesAcross = 16;
constexpr int kMostVideoFrames = 4096;
// Of all tiles of a picture or video: 1024 frames of 512 x 512, and many times the tokens of those.
constexpr std::int64_t kMostSmolPixels = std::int64_t{1} << 28, kMostSmolTokens = 1 << 20;

constexpr const char* kSmolKnown[] = {
    "video_processor_type", "do_pad",         "do_image_splitting",
    "max_image_size",       "video_sampling", "return_metadata",
    "return_row_col_info",  "num_frames",     "fps",
    "do_sample_frames"};

/// "longest_edge" of a size.
int longest_edge(const Json& config, const char* name, int fallback, int most,
                 std::string_view what) {
  const Json& size = part_named(config, name);
  if (size.is_null()) return fallback;
  if (!size.is_object() || size.size() != 1 || !size.contains("longest_edge"))
    fail_usage("{}: \"{}\" is {}, not a \"longest_edge\"", what, name, dump_json(size));
  const int value = positive_field(size, "longest_edge", fallback, what);
  if (value > most) fail_usage("{}: \"{}\" is {}, above {}", what, name, value, most);
  return value;
}

int even(int x) {
  return x + x % 2;
}

int next_multiple(int x, int of) {
  return (x + of - 1) / of * of;
}

/// The other side is rounded down, then up to an even number.
PictureSize with_longest(PictureSize picture, int longest) {
  const double ratio = static_cast<double>(picture.width) / picture.height;
  if (picture.width >= picture.height)
    return {std::max(1, even(static_cast<int>(longest / ratio))), longest};
  return {longest, std::max(1, even(static_cast<int>(longest * ratio)))};
}

PictureSize in_whole_tiles(PictureSize picture, int tile) {
  const double ratio = static_cast<double>(picture.width) / picture.height;
  if (picture.width >= picture.height) {
    const int width = next_multiple(picture.width, tile);
    return {next_multiple(static_cast<int>(width / ratio), tile), width};
  }
  const int height = next_multiple(picture.height, tile);
  return {height, next_multiple(static_cast<int>(height * ratio), tile)};
}

struct Resized {
  PictureSize size;
  std::vector<std::uint8_t> rgb;
  PictureView view() const { return {size.width, size.height, rgb}; }
};

Resized resized_to(const PictureView& picture, PictureSize to, Resample resample) {
  return {to, resize_picture(picture, to.width, to.height, resample, {0, 0, to.width, to.height})};
}

PictureSize size_of_view(const PictureView& picture) {
  if (picture.width < 1 || picture.height < 1) fail("an empty picture");
  return {picture.height, picture.width};
}

SmolTiles tiles_of(PictureSize picture, const SmolPixels& pixels) {
  if (!pixels.split) return {};
  const PictureSize whole = in_whole_tiles(with_longest(picture, pixels.longest), pixels.tile);
  if (whole.height <= pixels.tile && whole.width <= pixels.tile) return {};
  return {whole.height / pixels.tile, whole.width / pixels.tile};
}

/// The length of a tile in tokens that the processor writes must be the model's.
void check_tile(const SmolPixels& pixels, const SmolConfig& config, std::string_view what) {
  const int side = pixels.tile / config.vision.patch;
  if (side < 1 || side % config.merge != 0)
    fail_usage("{}: tiles of {} pixels do not have a multiple of {} patches of {} along a side",
               what, pixels.tile, config.merge, config.vision.patch);
}

/// So that what is seen fits in memory, whatever a stranger's file says.
void check_most(const SmolInput& input, std::string_view what) {
  const std::int64_t tile = input.still.tile, across = (input.still.longest + tile) / tile;
  const std::int64_t tiles = std::max<std::int64_t>(input.most_frames, across * across + 1);
  if (tiles * tile * tile > kMostSmolPixels || tiles * input.tokens() > kMostSmolTokens)
    fail_usage("{}: {} tiles of {} pixels along a side, {} tokens each, are too many", what, tiles,
               tile, input.tokens());
}

}  // namespace

SmolPixels SmolPixels::from_json(const Json& config, std::string_view what) {
  SmolPixels pixels;
  pixels.rule.read(config, kSmolKnown, what);
  const std::string type = get_string(config, "image_processor_type").value_or("SmolVLM");
  if (!type.starts_with("SmolVLM") && !type.starts_with("Idefics3"))
    fail_usage("{}: \"image_processor_type\" is '{}', not SmolVLMImageProcessor", what, type);
  pixels.longest = longest_edge(config, "size", pixels.longest, kLongestPicture, what);
  pixels.tile = longest_edge(config, "max_image_size", pixels.tile, kLargestTile, what);
  pixels.split = get_bool(config, "do_image_splitting").value_or(true);
  if (pixels.longest > kMostTilesAcross * pixels.tile)
    fail_usage("{}: pictures of {} pixels have more than {} tiles of {} along a side", what,
               pixels.longest, kMostTilesAcross, pixels.tile);
  return pixels;
}

Json SmolPixels::to_json() const {
  Json json = rule.to_json();
  json["longest"] = longest;
  json["tile"] = tile;
  json["split"] = split;
  return json;
}

SmolInput SmolInput::from_folder(const std::string& folder, const SmolConfig& config) {
  return as_usage([&] {
    SmolInput input;
    input.patch = config.vision.patch;
    input.merge = config.merge;
    std::string what;
    const Json own = picture_processor(folder, what);
    input.still = SmolPixels::from_json(own, what);
    check_tile(input.still, config, what);
    Json other = processor_part(folder, "video_preprocessor_config.json", "video_processor", what);
    if (!other.is_object()) other = own;
    const Json sampling = part_named(other, "video_sampling");
    // As transformers has it: the size of pictures, where there is one, goes before that of videos.
    if (sampling.is_object() && !other.contains("size"))
      other["size"] = part_named(sampling, "video_size");
    input.video = SmolPixels::from_json(other, what);
    input.video.split = false;
    check_tile(input.video, config, what);
    if (input.video.tile != input.still.tile)
      fail_usage("{}: tiles of videos have {} pixels, of pictures {}", what, input.video.tile,
                 input.still.tile);
    const Json& rule = sampling.is_object() ? sampling : other;
    input.fps = get_number(rule, "fps").value_or(input.fps);
    if (!(input.fps > 0) || !(input.fps <= 240)) fail_usage("{}: \"fps\" is {}", what, input.fps);
    const char* most = sampling.is_object() ? "max_frames" : "num_frames";
    input.most_frames = positive_field(rule, most, input.most_frames, what);
    if (input.most_frames > kMostVideoFrames)
      fail_usage("{}: \"{}\" is {}, above {}", what, most, input.most_frames, kMostVideoFrames);
    check_most(input, what);
    if (const char* joint = "processor_config.json";
        io::file_exists(io::join_path(folder, joint))) {
      const int length =
          positive_field(read_config(folder, joint), "image_seq_len", input.tokens(), joint);
      if (length != input.tokens())
        fail_usage("'{}': \"image_seq_len\" is {}, and a tile has {} tokens",
                   io::join_path(folder, joint), length, input.tokens());
    }
    return input;
  });
}

Json SmolInput::to_json() const {
  Json json = still.to_json();
  json["video"] = {{"longest", video.longest}, {"frames", most_frames}};
  SmolPixels same = video;
  same.longest = still.longest;
  same.split = still.split;
  if (same != still) json["video"] = video.to_json();
  json["video"]["frames"] = most_frames;
  return json;
}

std::vector<std::int64_t> SmolInput::frames(std::int64_t frames, double rate, double asked) const {
  const double all = static_cast<double>(frames), seconds = all / rate;
  const double count =
      std::max(1.0, std::min(std::nearbyint(asked * seconds), static_cast<double>(most_frames)));
  double first = 0, last = all - 1;
  if (seconds - 2 > most_frames * asked) {
    first = std::floor(rate);
    last = std::min(std::floor(all - rate), all - 1);
    if (first >= last) first = 0, last = all - 1;
  }
  std::vector<std::int64_t> taken;
  const double step = count > 1 ? (last - first) / (count - 1) : 0;
  for (double i = 0; i < count; ++i) {
    const double at = i > 0 && i + 1 == count ? last : i * step + first;
    // A container may promise more frames than a double tells apart.
    const auto number = at >= all - 1 ? frames - 1 : static_cast<std::int64_t>(at);
    if (taken.empty() || number != taken.back()) taken.push_back(number);
  }
  return taken;
}

SmolTiles SmolInput::tiles(PictureSize picture) const {
  return tiles_of(picture, still);
}

std::vector<std::uint8_t> SmolInput::prepare(const PictureView& picture, bool is_still) const {
  const SmolPixels& pixels = is_still ? still : video;
  const int tile = pixels.tile;
  const PictureSize shape = size_of_view(picture);
  Resized whole = resized_to(picture, with_longest(shape, pixels.longest), pixels.rule.resample);
  if (pixels.split)
    whole = resized_to(whole.view(), in_whole_tiles(whole.size, tile), pixels.rule.resample);
  const SmolTiles tiles = tiles_of(shape, pixels);
  std::vector<std::uint8_t> all;
  const std::size_t row_bytes = 3 * static_cast<std::size_t>(tile);
  all.reserve(static_cast<std::size_t>(tiles.count()) * row_bytes * static_cast<std::size_t>(tile));
  for (int row = 0; row < tiles.rows; ++row)
    for (int column = 0; column < tiles.columns; ++column)
      for (int y = row * tile; y < (row + 1) * tile; ++y) {
        const auto* from = whole.rgb.data() +
                           3 * (std::int64_t{y} * whole.size.width + std::int64_t{column} * tile);
        all.insert(all.end(), from, from + row_bytes);
      }
  const Resized last = resized_to(whole.view(), {tile, tile}, pixels.rule.resample);
  all.insert(all.end(), last.rgb.begin(), last.rgb.end());
  return all;
}

QwenPicture SmolInput::patches(std::span<const std::vector<std::uint8_t>> frames,
                               bool is_still) const {
  const SmolPixels& pixels = is_still ? still : video;
  const std::size_t bytes =
      3 * static_cast<std::size_t>(pixels.tile) * static_cast<std::size_t>(pixels.tile);
  std::size_t count = 0;
  for (const std::vector<std::uint8_t>& frame : frames) {
    if (frame.empty() || frame.size() % bytes != 0)
      fail("a frame is not made of tiles of {0}x{0}", pixels.tile);
    count += frame.size() / bytes;
  }
  if (count == 0) fail("nothing is seen");
  QwenPicture picture;
  picture.sight.still = is_still;
  picture.sight.grid = {static_cast<int>(count), side(), side()};
  picture.patches = Tensor({picture.sight.grid.patches(), std::int64_t{3} * patch * patch});
  const auto number = pixels.rule.numbers();
  float* out = picture.patches.data<float>();
  for (const std::vector<std::uint8_t>& frame : frames)
    for (std::size_t begin = 0; begin < frame.size(); begin += bytes)
      for (int row = 0; row < side(); ++row)
        for (int column = 0; column < side(); ++column)
          for (std::size_t channel = 0; channel < 3; ++channel)
            for (int y = row * patch; y < (row + 1) * patch; ++y) {
              const std::uint8_t* rgb = frame.data() + begin + channel +
                                        3 * (std::int64_t{y} * pixels.tile + column * patch);
              for (int x = 0; x < patch; ++x, rgb += 3)
                *out++ = number[channel][*rgb];
            }
  return picture;
}

}  // namespace vfm::models
