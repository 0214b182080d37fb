// SPDX-License-Identifier: Apache-2.0
#include "models/tokenizer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "models/folder/model_folder.h"
#include "models/tokenizer_family.h"
#include "tensor/device.h"

namespace vfm::models {
namespace {

std::vector<int> levels_of(const Json& json) {
  const auto found = json.find("levels");
  if (found == json.end()) return {};
  if (!found->is_array()) fail("'levels' is not a list");
  std::vector<int> levels;
  for (const Json& level : *found) {
    if (!level.is_number_integer()) fail("'levels' holds {}", dump_json(level));
    levels.push_back(
        static_cast<int>(std::clamp<std::int64_t>(level.get<std::int64_t>(), 0, 1 << 20)));
  }
  return levels;
}

TokenizerConfig tokenizer_in(const std::string& folder) {
  const ModelFolder model(folder, {.part = "vae", .types = tokenizer_class_names()});
  return {.name = model.type(), .path = model.absolute_path()};
}

struct Size {
  int frames, height, width;
};

Size size_of(const Tensor& rgb) {
  if (rgb.dims() != 4 || rgb.dtype() != DType::u8 || rgb.size(3) != 3)
    fail("pictures of {} {}", dtype_name(rgb.dtype()), to_string(rgb.shape()));
  return {static_cast<int>(rgb.size(0)), static_cast<int>(rgb.size(1)),
          static_cast<int>(rgb.size(2))};
}

/// (3, T, H, W) of bytes [T, H, W, 3].
std::vector<float> planar_pixels(const Tensor& rgb) {
  Tensor host = rgb;
  if (rgb.device() != Device::cpu) {
    const auto turn = take_turn(rgb.device());
    host = rgb.to(Device::cpu);
  }
  const std::uint8_t* const from = host.data<std::uint8_t>();
  const auto places = static_cast<std::size_t>(host.elements() / 3);
  std::vector<float> planar(3 * places);
  for (std::size_t i = 0; i < places; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      planar[c * places + i] = static_cast<float>(from[3 * i + c]) / 127.5f - 1;
  return planar;
}

}  // namespace

TokenizerConfig TokenizerConfig::from_json(const Json& json) {
  if (!json.is_object()) fail_usage("a tokenizer is described by a JSON object");
  return as_usage([&] {
    const auto text = [&](const char* key) { return get_string(json, key).value_or(""); };
    TokenizerConfig config{.name = text("name"), .path = text("path"), .hash = text("hash")};
    const TokenizerFamily* const family = find_tokenizer_family(config.name);
    if (!family) return config;
    config.compute = text("compute");
    config.levels = levels_of(json);
    config.channels = get_integer(json, "channels");
    config.time_factor = get_integer(json, "time_factor");
    config.space_factor = get_integer(json, "space_factor");
    for (const auto& [key, value] : json.items())
      if (config.unknown.empty() && key != "name" &&
          std::ranges::find(family->keys, key) == family->keys.end())
        config.unknown = key;
    return config;
  });
}

Json TokenizerConfig::to_json() const {
  Json json = {{"name", name}};
  const auto add = [&](const char* key, const auto& value, bool said) {
    if (said) json[key] = value;
  };
  add("path", path, !path.empty());
  add("hash", hash, !hash.empty());
  add("compute", compute, !compute.empty());
  add("channels", channels.value_or(0), channels.has_value());
  add("levels", levels, !levels.empty());
  add("time_factor", time_factor.value_or(0), time_factor.has_value());
  add("space_factor", space_factor.value_or(0), space_factor.has_value());
  return json;
}

double psnr(std::span<const float> pixels, std::span<const float> decoded) {
  if (pixels.size() != decoded.size())
    fail("the PSNR of {} values and {}", pixels.size(), decoded.size());
  double squares = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const double difference = pixels[i] - std::clamp(decoded[i], -1.0f, 1.0f);
    squares += difference * difference;
  }
  const double db =
      10 * std::log10(4 * static_cast<double>(pixels.size()) / std::max(squares, 1e-12));
  return db > 60 ? 60 : db;  // and a NaN stays one
}

std::vector<float> VideoTokenizer::encode_bytes(const Tensor& rgb) const {
  const Size size = size_of(rgb);
  return encode(planar_pixels(rgb), size.frames, size.height, size.width);
}

std::vector<std::int32_t> VideoTokenizer::codes_of_bytes(const Tensor& rgb) const {
  const Size size = size_of(rgb);
  return encode_codes(planar_pixels(rgb), size.frames, size.height, size.width);
}

void VideoTokenizer::decode_stream(std::span<const float> latents, int frames, int height,
                                   int width, const FrameSink& sink) const {
  sink(decode(latents, frames, height, width), 1 + (frames - 1) * time_factor());
}

std::vector<float> VideoTokenizer::collect_frames(std::span<const float> latents, int frames,
                                                  int height, int width) const {
  const int space = space_factor(), total = 1 + (frames - 1) * time_factor();
  const std::size_t plane = static_cast<std::size_t>(height * space) * (width * space);
  std::vector<float> pixels;
  std::size_t done = 0;
  decode_stream(latents, frames, height, width, [&](std::span<const float> some, int count) {
    pixels.resize(3 * plane * total);
    const std::size_t piece = plane * static_cast<std::size_t>(count);
    for (std::size_t c = 0; c < 3; ++c)
      std::copy_n(some.begin() + static_cast<std::ptrdiff_t>(c * piece), piece,
                  pixels.begin() + static_cast<std::ptrdiff_t>((c * total + done) * plane));
    done += static_cast<std::size_t>(count);
  });
  return pixels;
}

void VideoTokenizer::decode_together(dist::Group& group, std::span<const float> latents, int frames,
                                     int height, int width, const FrameSink& sink) const {
  if (group.rank() == 0) decode_stream(latents, frames, height, width, sink);
}

void VideoTokenizer::check_memory(bool, int, int, int, int) const {}

std::vector<std::int32_t> VideoTokenizer::encode_codes(std::span<const float>, int, int,
                                                       int) const {
  fail("tokenizer '{}' is continuous: it has no codes", name());
}

std::vector<float> VideoTokenizer::latent_of_codes(std::span<const std::int32_t>) const {
  fail("tokenizer '{}' is continuous: it has no codes", name());
}

std::vector<float> VideoTokenizer::decode_codes(std::span<const std::int32_t> codes, int frames,
                                                int height, int width) const {
  return decode(latent_of_codes(codes), frames, height, width);
}

TokenizerConfig tokenizer_config(const std::string& named) {
  return named.starts_with("builtin:") ? TokenizerConfig{named} : tokenizer_in(named);
}

TokenizerConfig moved_tokenizer(TokenizerConfig config, const std::string& folder) {
  const TokenizerConfig there = tokenizer_in(folder);
  if (config.name != there.name)
    fail_usage("'{}' holds a tokenizer of type {}, but \"{}\" is needed", folder, there.name,
               config.name);
  config.path = there.path;
  return config;
}

}  // namespace vfm::models
