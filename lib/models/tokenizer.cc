// SPDX-License-Identifier: Apache-2.0
#include "models/tokenizer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/cosmos/tokenizer.h"
#include "models/wavelet/fsq_wavelet.h"
#include "models/wavelet/wavelet.h"

namespace vfm::models {
namespace {

int field(const Json& config, const char* name, int otherwise) {
  const std::int64_t value = get_integer(config, name).value_or(otherwise);
  if (value < 1 || value > 1'000'000) fail("'{}' is {}", name, value);
  return static_cast<int>(value);
}

// Throws Error{usage} for a key that is not one of `known`, besides the name.
void check_keys(const Json& config, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : config.items())
    if (key != "name" && std::ranges::find(known, key) == known.end())
      fail_usage("tokenizer '{}' has no option '{}'", config["name"].get<std::string>(), key);
}

std::vector<int> levels_of(const Json& config) {
  const auto found = config.find("levels");
  if (found == config.end()) return kFsqLevels;
  if (!found->is_array()) fail("'levels' is not a list");
  std::vector<int> levels;
  for (const Json& level : *found) {
    if (!level.is_number_integer()) fail("'levels' holds {}", dump_json(level));
    levels.push_back(
        static_cast<int>(std::clamp<std::int64_t>(level.get<std::int64_t>(), 0, 1 << 20)));
  }
  return levels;
}

std::unique_ptr<VideoTokenizer> make(const Json& config, Device device, std::uint64_t memory) {
  const std::string name = need_string(config, "name", "the tokenizer");
  if (memory > 0 && name.starts_with("builtin:"))
    fail_usage("--tokenizer-memory is for tokenizers from a folder: {} has no network", name);
  if (name == "builtin:wavelet") {
    check_keys(config, {"channels", "time_factor", "space_factor"});
    return std::make_unique<WaveletTokenizer>(field(config, "channels", 24),
                                              field(config, "time_factor", 8),
                                              field(config, "space_factor", 8), device);
  }
  if (name == "builtin:fsq") {
    check_keys(config, {"levels", "time_factor", "space_factor"});
    return std::make_unique<FsqWaveletTokenizer>(levels_of(config), field(config, "time_factor", 4),
                                                 field(config, "space_factor", 4), device);
  }
  if (is_cosmos_tokenizer(name)) {
    check_keys(config, {"path", "hash", "compute"});
    return std::make_unique<CosmosTokenizer>(config, device,
                                             CosmosRoom{.memory = static_cast<double>(memory)});
  }
  fail_usage("there is no tokenizer '{}'; choose builtin:wavelet, builtin:fsq or a folder", name);
}

}  // namespace

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

void VideoTokenizer::decode_stream(std::span<const float> latents, int frames, int height,
                                   int width, const FrameSink& sink) const {
  sink(decode(latents, frames, height, width), 1 + (frames - 1) * time_factor());
}

void VideoTokenizer::check_memory(bool, int, int, int) const {}

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

Json tokenizer_config(const std::string& named) {
  return named.starts_with("builtin:") ? Json{{"name", named}} : cosmos_tokenizer_in(named);
}

Json moved_tokenizer(Json config, const std::string& folder) {
  const Json there = cosmos_tokenizer_in(folder);
  const Json name = config.is_object() ? config.value("name", Json()) : Json();
  if (name != there["name"])
    fail_usage("'{}' holds a tokenizer of type {}, but {} is needed", folder,
               there["name"].get<std::string>(), dump_json(name));
  config["path"] = there["path"];
  return config;
}

std::unique_ptr<VideoTokenizer> make_tokenizer(const Json& config, Device device,
                                               std::uint64_t memory) {
  if (!config.is_object()) fail_usage("a tokenizer is described by a JSON object");
  return as_usage([&] { return make(config, device, memory); });
}

}  // namespace vfm::models
