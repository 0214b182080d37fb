// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/siglip_naflex.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "models/encoder/encoder_folder.h"
#include "models/encoder/siglip_head.h"
#include "models/encoder/vision_folder.h"
#include "ops/pointwise/add.h"

namespace vfm::models {
namespace {

/// Places of the grid from `first` on, and how much each counts.
struct LinearTaps {
  int first = 0;
  std::vector<float> weights;
};

/// Of place `to` of `count`, on a line that had `from`. Its triangle is as wide as a step of the
/// finer of the two lines would have it: where places become fewer, more are averaged.
LinearTaps linear_taps(int to, int count, int from) {
  const float scale = static_cast<float>(from) / static_cast<float>(count);
  const float reach = std::max(scale, 1.0f);
  const float centre = (static_cast<float>(to) + 0.5f) * scale - 0.5f;
  const auto weight = [&](int at) {
    return std::max(0.0f, 1 - std::abs(static_cast<float>(at) - centre) / reach);
  };
  LinearTaps taps;
  taps.first = std::max(0, static_cast<int>(std::floor(centre - reach)));
  const int end = std::min(from, static_cast<int>(std::ceil(centre + reach)) + 1);
  float sum = 0;
  for (int at = taps.first; at < end; ++at) {
    taps.weights.push_back(weight(at));
    sum += taps.weights.back();
  }
  for (float& one : taps.weights)
    one /= sum;
  return taps;
}

/// pixels [1, 3, height, width] to [height/P width/P, P P 3], the three numbers of a pixel
/// together.
Tensor flatten_patches(const Tensor& pixels, int patch) {
  const std::int64_t height = pixels.size(2), width = pixels.size(3);
  const std::int64_t down = height / patch, across = width / patch;
  const Tensor patches({down * across, std::int64_t{3} * patch * patch});
  const float* from = pixels.floats().data();
  float* to = patches.data<float>();
  for (std::int64_t row = 0; row < down; ++row)
    for (std::int64_t column = 0; column < across; ++column)
      for (std::int64_t y = row * patch; y < (row + 1) * patch; ++y)
        for (std::int64_t x = column * patch; x < (column + 1) * patch; ++x)
          for (std::int64_t channel = 0; channel < 3; ++channel)
            *to++ = from[(channel * height + y) * width + x];
  return patches;
}

class SiglipNaflex final : public PictureTower {
 public:
  SiglipNaflex(const PictureTowerConfig& config, const HfComponent& folder, int most_patches,
               DType compute, Device device)
      : PictureTower(config, folder, vision_names(folder), vision_layer_name, compute, device),
        most_patches_(most_patches) {
    const std::int64_t d = config.stack.width;
    std::vector<TensorTarget> targets = siglip_targets(config);
    targets.push_back({"embeddings.patch_embedding.weight",
                       {d, std::int64_t{3} * config.patch * config.patch},
                       {}});
    targets.push_back({"embeddings.patch_embedding.bias", {d}, {}});
    targets.push_back({"embeddings.position_embedding.weight",
                       {std::int64_t{config.side()} * config.side(), d},
                       {}});
    check_tensors(selected_, targets);
    places_ = read_floats(*selected_.find("embeddings.position_embedding.weight")).clone();
  }

  int dim() const override { return config_.stack.width; }
  std::int64_t tokens() const override { return most_patches_; }

 protected:
  Tensor begin(ops::Tape& tape, const Tensor& pixels) const override {
    const auto down = static_cast<int>(pixels.size(2) / config_.patch),
               across = static_cast<int>(pixels.size(3) / config_.patch);
    if (pixels.size(0) != 1 || down < 1 || across < 1 ||
        std::int64_t{down} * across > most_patches_)
      fail("pictures {} have no 1 to {} patches of {}x{}", to_string(pixels.shape()), most_patches_,
           config_.patch, config_.patch);
    const Tensor patches = flatten_patches(pixels, config_.patch).to(weights_.device);
    const Tensor x = weights_.linear(tape, patches, "embeddings.patch_embedding");
    ops::add_in_place(
        x, resample_places_linear(places_, config_.side(), down, across).to(weights_.device));
    return x;
  }
  Tensor end(ops::Tape& tape, const Tensor& x) const override {
    return siglip_head(tape, x, x.size(0), config_, weights_);
  }

 private:
  const int most_patches_;
  Tensor places_;
};

}  // namespace

Tensor resample_places_linear(const Tensor& places, int side, int height, int width) {
  if (places.dims() != 2 || places.size(0) != std::int64_t{side} * side)
    fail("places {} are not those of {}x{} patches", to_string(places.shape()), side, side);
  const std::int64_t d = places.size(1);
  const Tensor result = Tensor::zeros({std::int64_t{height} * width, d});
  float* to = result.data<float>();
  std::vector<LinearTaps> columns;
  for (int x = 0; x < width; ++x)
    columns.push_back(linear_taps(x, width, side));
  for (int y = 0; y < height; ++y) {
    const LinearTaps rows = linear_taps(y, height, side);
    for (const LinearTaps& across : columns) {
      for (std::size_t i = 0; i < rows.weights.size(); ++i)
        for (std::size_t j = 0; j < across.weights.size(); ++j) {
          const float weight = rows.weights[i] * across.weights[j];
          const std::int64_t at = (rows.first + static_cast<std::int64_t>(i)) * side +
                                  across.first + static_cast<std::int64_t>(j);
          const float* from = places.floats().data() + at * d;
          for (std::int64_t k = 0; k < d; ++k)
            to[k] += weight * from[k];
        }
      to += d;
    }
  }
  return result;
}

std::unique_ptr<PictureTower> make_siglip_naflex(const HfComponent& folder,
                                                 const PictureInput& input, DType compute,
                                                 Device device) {
  const std::string what = fmt::format("'{}'", folder.config_path());
  const Json& vision = vision_config(folder);
  // Its pictures have no size: what a grid of places is for is that of a square one.
  PictureTowerConfig config = siglip_config(folder, 1 << 14);
  const int places = as_usage([&] { return positive_field(vision, "num_patches", 256, what); });
  const int side = static_cast<int>(std::lround(std::sqrt(places)));
  if (side * side != places)
    fail_usage("{}: \"num_patches\" is {}, not the square of a number", what, places);
  config.image_size = side * config.patch;
  if (!input.own_sizes())
    fail_usage("{}: a SigLIP 2 of any resolution (NaFlex) needs Siglip2ImageProcessor", what);
  if (input.patch != config.patch)
    fail_usage("{}: the model has patches of {}, its preprocessing makes them {}", what,
               config.patch, input.patch);
  return std::make_unique<SiglipNaflex>(config, folder, input.most_patches, compute, device);
}

}  // namespace vfm::models
