// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/picture_tower.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "ops/matmul/linear.h"
#include "ops/norm/layer_norm.h"
#include "ops/pointwise/add.h"
#include "tensor/device.h"

namespace vfm::models {
namespace {

constexpr int kChannels = 3;

/// The four places that one between them is made of, and their weights.
struct CubicTaps {
  std::array<int, 4> at;
  std::array<float, 4> weight;
};

/// Of place `to` of `count`, on a line that had `from`; its ends go on for ever.
CubicTaps cubic_taps(int to, int count, int from) {
  constexpr double a = -0.75;
  const auto near = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const double centre = (to + 0.5) * from / count - 0.5, below = std::floor(centre);
  const double t = centre - below;
  CubicTaps taps{{},
                 {static_cast<float>(far(t + 1)), static_cast<float>(near(t)),
                  static_cast<float>(near(1 - t)), static_cast<float>(far(2 - t))}};
  for (int i = 0; i < 4; ++i)
    taps.at[static_cast<std::size_t>(i)] = std::clamp(static_cast<int>(below) - 1 + i, 0, from - 1);
  return taps;
}

}  // namespace

PictureTowerConfig PictureTowerConfig::from_json(const Json& config,
                                                 const PictureTowerConfig& fallback,
                                                 std::string_view activation,
                                                 std::string_view what) {
  return as_usage([&] {
    const auto field = [&](const char* name, int value) {
      return positive_field(config, name, value, what);
    };
    PictureTowerConfig c = fallback;
    c.stack.width = field("hidden_size", fallback.stack.width);
    c.stack.heads = field("num_attention_heads", fallback.stack.heads);
    c.stack.layers = field("num_hidden_layers", fallback.stack.layers);
    if (fallback.stack.feed_forward > 0)
      c.stack.feed_forward = field("intermediate_size", fallback.stack.feed_forward);
    c.image_size = field("image_size", fallback.image_size);
    c.patch = field("patch_size", fallback.patch);
    c.stack.epsilon = static_cast<float>(
        get_number(config, "layer_norm_eps").value_or(double{fallback.stack.epsilon}));
    c.stack.activation =
        gelu_of(get_string(config, "hidden_act").value_or(std::string(activation)), what);
    if (const int channels = field("num_channels", kChannels); channels != kChannels)
      fail_usage("{}: its pictures have {} channels, not 3", what, channels);
    if (c.patch > c.image_size || c.image_size > (1 << 14))
      fail_usage("{}: patches of {} do not make pictures of {}", what, c.patch, c.image_size);
    return c;
  });
}

void PictureTowerConfig::need_size(PictureSize size, std::string_view what) const {
  if (size != PictureSize{image_size, image_size})
    fail_usage("{}: the model takes pictures of {}x{}, its preprocessing makes them {}x{}", what,
               image_size, image_size, size.width, size.height);
}

Tensor TowerWeights::floats(const std::string& name) const {
  return use_weight(*set.find(name), DType::f32, device);
}

Tensor TowerWeights::linear(ops::Tape& tape, const Tensor& x, const std::string& name) const {
  const Tensor weight = use_weight(*set.find(name + ".weight"), compute, device);
  const Tensor matrix = weight.reshape({weight.size(0), weight.elements() / weight.size(0)});
  const bool biased = set.find(name + ".bias") != nullptr;
  return ops::linear(tape, x.to(compute), matrix, biased ? floats(name + ".bias") : Tensor(),
                     DType::f32);
}

Tensor TowerWeights::norm(ops::Tape& tape, const Tensor& x, const std::string& name,
                          float epsilon) const {
  return ops::layer_norm(tape, x, floats(name + ".weight"), floats(name + ".bias"), epsilon);
}

PictureTower::PictureTower(const PictureTowerConfig& config, const HfComponent& folder,
                           const std::function<std::string(const std::string&)>& select,
                           const EncoderNames& layer_names, DType compute, Device device)
    : config_(config),
      selected_(folder.weights(), select),
      weights_{selected_, compute, device},
      stack_(config.stack, layer_names, selected_, compute, device) {}

Tensor PictureTower::encode(const Tensor& pixels) const {
  const std::int64_t pictures = pixels.size(0);
  // On the CPU products of a picture's rows are as fast as those of many pictures'.
  if (weights_.device == Device::cpu) {
    std::vector<Tensor> each;
    for (std::int64_t n = 0; n < pictures; ++n)
      each.push_back(pixels.rows(n, n + 1));
    return encode_each(each);
  }
  ops::Tape tape(false);
  const std::vector<std::int64_t> lengths(static_cast<std::size_t>(pictures), tokens());
  return end(tape, stack_.forward(begin(tape, pixels), lengths)).to(Device::cpu);
}

Tensor PictureTower::encode_each(std::span<const Tensor> pictures) const {
  ops::Tape tape(false);
  std::vector<Tensor> begun;
  std::vector<std::int64_t> lengths;
  for (const Tensor& picture : pictures) {
    begun.push_back(begin(tape, picture));
    lengths.push_back(begun.back().size(0));
  }
  Tensor x({std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), config_.stack.width},
           DType::f32, weights_.device);
  std::int64_t row = 0;
  for (Tensor& one : begun) {
    copy(one, x.rows(row, row + one.size(0)));
    row += one.size(0);
    one = Tensor();
  }
  x = stack_.forward(x, lengths, true);
  const Tensor vectors({static_cast<std::int64_t>(pictures.size()), dim()});
  row = 0;
  for (std::size_t n = 0; n < lengths.size(); row += lengths[n++]) {
    const auto at = static_cast<std::int64_t>(n);
    copy(end(tape, x.rows(row, row + lengths[n])).to(Device::cpu), vectors.rows(at, at + 1));
  }
  return vectors;
}

Tensor cut_patches(const Tensor& pixels, int patch) {
  if (pixels.dims() != 4 || pixels.size(1) != kChannels || pixels.size(2) < patch ||
      pixels.size(3) < patch)
    fail("pictures {} have no patches of {}x{}", to_string(pixels.shape()), patch, patch);
  const std::int64_t height = pixels.size(2), width = pixels.size(3);
  const std::int64_t down = height / patch, across = width / patch;
  const Tensor patches({pixels.size(0) * down * across, std::int64_t{kChannels} * patch * patch});
  const float* from = pixels.floats().data();
  float* to = patches.data<float>();
  for (std::int64_t n = 0; n < pixels.size(0); ++n, from += kChannels * height * width)
    for (std::int64_t row = 0; row < down; ++row)
      for (std::int64_t column = 0; column < across; ++column)
        for (std::int64_t channel = 0; channel < kChannels; ++channel)
          for (std::int64_t y = 0; y < patch; ++y, to += patch)
            std::memcpy(to, from + (channel * height + row * patch + y) * width + column * patch,
                        static_cast<std::size_t>(patch) * sizeof(float));
  return patches;
}

Tensor resample_places(const Tensor& places, int side, int height, int width) {
  if (places.dims() != 2 || places.size(0) != std::int64_t{side} * side)
    fail("places {} are not those of {}x{} patches", to_string(places.shape()), side, side);
  if (height == side && width == side) return places;
  const std::int64_t d = places.size(1);
  const Tensor result = Tensor::zeros({std::int64_t{height} * width, d});
  float* to = result.data<float>();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x, to += d) {
      const CubicTaps down = cubic_taps(y, height, side), across = cubic_taps(x, width, side);
      for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 4; ++j) {
          const float weight = down.weight[i] * across.weight[j];
          const float* from =
              places.floats().data() + (std::int64_t{down.at[i]} * side + across.at[j]) * d;
          for (std::int64_t k = 0; k < d; ++k)
            to[k] += weight * from[k];
        }
    }
  return result;
}

Tensor embed_pictures(ops::Tape& tape, const Tensor& pixels, const PatchEmbedding& embedding,
                      const TowerWeights& weights) {
  const Tensor patches = cut_patches(pixels, embedding.patch).to(weights.device);
  const Tensor embedded = weights.linear(tape, patches, embedding.projection);
  const std::int64_t pictures = pixels.size(0), d = embedded.size(1);
  const std::int64_t own = embedded.size(0) / pictures, before = embedding.first.defined() ? 1 : 0;
  if (embedding.places.size(0) != before + own)
    fail("pictures of {} patches do not fit {} places", own, embedding.places.size(0) - before);
  const Tensor x({pictures * (before + own), d}, DType::f32, weights.device);
  for (std::int64_t n = 0; n < pictures; ++n) {
    const Tensor tokens = x.rows(n * (before + own), (n + 1) * (before + own));
    if (before > 0) copy(embedding.first.reshape({1, d}), tokens.rows(0, 1));
    copy(embedded.rows(n * own, (n + 1) * own), tokens.rows(before, before + own));
    ops::add_in_place(tokens, embedding.places);
  }
  return x;
}

Tensor first_tokens(const Tensor& x, std::int64_t each) {
  const std::int64_t pictures = x.size(0) / each;
  const Tensor first({pictures, x.size(1)}, DType::f32, x.device());
  for (std::int64_t n = 0; n < pictures; ++n)
    copy(x.rows(n * each, n * each + 1), first.rows(n, n + 1));
  return first;
}

}  // namespace vfm::models
