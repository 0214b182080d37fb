// The families builtin:wavelet and builtin:fsq, which are one but for the making.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "models/tokenizer_family.h"
#include "models/wavelet/fsq_wavelet.h"
#include "tensor/meta.h"

namespace vfm::models {
namespace {

int builtin_field(const std::optional<std::int64_t>& said, const char* name, int otherwise) {
  const std::int64_t value = said.value_or(otherwise);
  if (value < 1 || value > 1'000'000) fail("'{}' is {}", name, value);
  return static_cast<int>(value);
}

std::unique_ptr<VideoTokenizer> make_wavelet(const TokenizerConfig& config, Device device,
                                             std::uint64_t, const LoadingRanks&) {
  const int time = builtin_field(config.time_factor, "time_factor", 8);
  const int space = builtin_field(config.space_factor, "space_factor", 8);
  return std::make_unique<WaveletTokenizer>(builtin_field(config.channels, "channels", 24), time,
                                            space, device);
}

std::unique_ptr<VideoTokenizer> make_fsq_wavelet(const TokenizerConfig& config, Device device,
                                                 std::uint64_t, const LoadingRanks&) {
  const int time = builtin_field(config.time_factor, "time_factor", 4);
  const int space = builtin_field(config.space_factor, "space_factor", 4);
  return std::make_unique<FsqWaveletTokenizer>(config.levels.empty() ? kFsqLevels : config.levels,
                                               time, space, device);
}

/// Works on Device::meta. Host memory is that of all pixels, which decode() returns.
TokenizerCost builtin_cost(const VideoTokenizer& tokenizer, const TokenizerWork& work,
                           Device device) {
  const int frames = 1 + (work.frames - 1) * tokenizer.time_factor();
  const int height = work.height * tokenizer.space_factor();
  const int width = work.width * tokenizer.space_factor();
  const Tensor given(work.encodes
                         ? Shape{3, frames, height, width}
                         : Shape{tokenizer.channels(), work.frames, work.height, work.width},
                     DType::f32, Device::meta);
  const std::span<const float> values(given.data<float>(),
                                      static_cast<std::size_t>(given.elements()));
  const MetaAccount account(device);
  if (work.encodes)
    tokenizer.encode(values, frames, height, width);
  else
    tokenizer.decode(values, work.frames, work.height, work.width);
  TokenizerCost cost;
  cost.cost.take(account, 0);
  if (!work.encodes) cost.cost.host_bytes = sizeof(float) * 3.0 * frames * height * width;
  return cost;
}

TokenizerFacts inspect_builtin(const TokenizerConfig& config, Device device) {
  const std::shared_ptr<const VideoTokenizer> made = make_tokenizer(config, Device::meta);
  TokenizerFacts facts;
  facts.channels = made->channels();
  facts.time_factor = made->time_factor();
  facts.space_factor = made->space_factor();
  facts.vocabulary = made->vocabulary();
  facts.cost = [=](const TokenizerWork& work) { return builtin_cost(*made, work, device); };
  return facts;
}

TokenizerConfig settle_builtin(const TokenizerConfig& config) {
  return make_tokenizer(config, Device::meta)->config();
}

}  // namespace

constinit const TokenizerFamily kWaveletFamily = {
    .name = "builtin:wavelet",
    .keys = {"channels", "time_factor", "space_factor"},
    .inspect = inspect_builtin,
    .settle = settle_builtin,
    .make = make_wavelet};

constinit const TokenizerFamily kFsqWaveletFamily = {
    .name = "builtin:fsq",
    .keys = {"levels", "time_factor", "space_factor"},
    .inspect = inspect_builtin,
    .settle = settle_builtin,
    .make = make_fsq_wavelet};

}  // namespace vfm::models
