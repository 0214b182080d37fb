// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/vjepa2.h"

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "models/encoder/encoder_folder.h"
#include "models/encoder/picture_encoder.h"

namespace vfm::models {
namespace {

/// Tokens of a clip. The largest published model has 18432.
constexpr std::int64_t kMostClipTokens = 1 << 17;
/// With it, the tables of angles stay small whatever a folder says.
constexpr int kMostHeadDim = 256;

/// By EncoderPart; there are no scales.
constexpr std::array<const char*, 8> kVjepaParts = {
    "attention.query", "attention.key", "attention.value", "attention.proj",
    "norm1",           "norm2",         "mlp.fc1",         "mlp.fc2"};

std::string vjepa_layer_name(int layer, EncoderPart part) {
  return fmt::format("layer.{}.{}", layer, kVjepaParts.at(static_cast<std::size_t>(part)));
}

/// The encoder's tensors alone. With a head for classes the whole model is "vjepa2.".
std::string vjepa_name(const std::string& name) {
  std::string_view rest = name;
  for (const std::string_view prefix : {"vjepa2.", "encoder."}) {
    if (rest.starts_with(prefix))
      rest.remove_prefix(prefix.size());
    else if (prefix == "encoder.")
      return {};
  }
  return std::string(rest);
}

struct VjepaConfig {
  PictureTowerConfig tower;
  int frames = 0, tubelet = 0;

  std::int64_t tokens() const {
    return std::int64_t{frames} / tubelet * tower.side() * tower.side();
  }
};

/// Element `j` of a head's part of `d` elements, at `place`. In f32, as it was in training.
float angle_of(std::int64_t place, int j, int d) {
  const float power = static_cast<float>(j % (d / 2)) / (static_cast<float>(d) / 2.0f);
  return static_cast<float>(place) * (1.0f / std::pow(10000.0f, power));
}

ops::RotaryAngles vjepa_angles(const VjepaConfig& c, Device device) {
  const int heads = c.tower.stack.heads, dim = c.tower.stack.width / heads, axis = dim / 3 / 2 * 2;
  const Tensor cosines({c.tokens(), dim}), sines({c.tokens(), dim});
  float *cosine = cosines.data<float>(), *sine = sines.data<float>();
  const std::int64_t side = c.tower.side();
  for (std::int64_t token = 0; token < c.tokens(); ++token) {
    const std::array<std::int64_t, 3> places = {token / (side * side), token / side % side,
                                                token % side};
    for (int j = 0; j < dim; ++j) {
      const bool placed = j < 3 * axis;
      const float angle =
          placed ? angle_of(places.at(static_cast<std::size_t>(j / axis)), j % axis, axis) : 0;
      *cosine++ = std::cos(angle);
      *sine++ = std::sin(angle);
    }
  }
  return {cosines.to(device), sines.to(device)};
}

/// pixels [N, 3 T, height, width] to [N tokens, 3 t P P], tokens frame by frame, then row by row.
Tensor cut_tubelets(const Tensor& pixels, int tubelet, int patch) {
  const std::int64_t frames = pixels.size(1) / 3, height = pixels.size(2), width = pixels.size(3);
  const std::int64_t deep = frames / tubelet, down = height / patch, across = width / patch;
  const Tensor tubelets(
      {pixels.size(0) * deep * down * across, std::int64_t{3} * tubelet * patch * patch});
  float* to = tubelets.data<float>();
  const auto cut = [&](const float* clip, std::int64_t first, std::int64_t y, std::int64_t x) {
    for (std::int64_t channel = 0; channel < 3; ++channel)
      for (std::int64_t frame = first; frame < first + tubelet; ++frame)
        for (std::int64_t row = y; row < y + patch; ++row, to += patch)
          std::memcpy(to, clip + ((frame * 3 + channel) * height + row) * width + x,
                      static_cast<std::size_t>(patch) * sizeof(float));
  };
  for (std::int64_t n = 0; n < pixels.size(0); ++n)
    for (std::int64_t frame = 0; frame < deep; ++frame)
      for (std::int64_t row = 0; row < down; ++row)
        for (std::int64_t column = 0; column < across; ++column)
          cut(pixels.floats().data() + n * frames * 3 * height * width, frame * tubelet,
              row * patch, column * patch);
  return tubelets;
}

class Vjepa2 final : public PictureTower {
 public:
  Vjepa2(const VjepaConfig& config, const HfComponent& folder, DType compute, Device device)
      : PictureTower(config.tower, folder, vjepa_name, vjepa_layer_name, compute, device),
        frames_(config.frames),
        tubelet_(config.tubelet),
        tokens_(config.tokens()) {
    const std::int64_t d = config_.stack.width;
    std::vector<TensorTarget> targets = EncoderStack::tensors(config_.stack, vjepa_layer_name);
    targets.push_back({"embeddings.patch_embeddings.proj.weight",
                       {d, 3, tubelet_, config_.patch, config_.patch},
                       {}});
    targets.push_back({"embeddings.patch_embeddings.proj.bias", {d}, {}});
    targets.push_back({"layernorm.weight", {d}, {}});
    targets.push_back({"layernorm.bias", {d}, {}});
    check_tensors(selected_, targets);
  }

  int dim() const override { return config_.stack.width; }
  std::int64_t tokens() const override { return tokens_; }
  int frames() const override { return frames_; }

 protected:
  Tensor begin(ops::Tape& tape, const Tensor& pixels) const override {
    if (pixels.size(1) != std::int64_t{3} * frames_ || pixels.size(2) != config_.image_size ||
        pixels.size(3) != config_.image_size)
      fail("pixels {} are no clips of {} frames of {}x{}", to_string(pixels.shape()), frames_,
           config_.image_size, config_.image_size);
    const Tensor tubelets = cut_tubelets(pixels, tubelet_, config_.patch).to(weights_.device);
    return weights_.linear(tape, tubelets, "embeddings.patch_embeddings.proj");
  }

  Tensor end(ops::Tape& tape, const Tensor& x) const override {
    const Tensor normed =
        weights_.norm(tape, x, "layernorm", config_.stack.epsilon).to(Device::cpu);
    const std::int64_t clips = x.size(0) / tokens_, d = x.size(1);
    const Tensor means({clips, d});
    const float* from = normed.data<float>();
    for (std::int64_t clip = 0; clip < clips; ++clip) {
      std::vector<double> sums(static_cast<std::size_t>(d));
      for (std::int64_t token = 0; token < tokens_; ++token)
        for (double& sum : sums)
          sum += double{*from++};
      for (std::int64_t i = 0; i < d; ++i)
        means.data<float>()[clip * d + i] =
            static_cast<float>(sums[static_cast<std::size_t>(i)] / static_cast<double>(tokens_));
    }
    return means;
  }

 private:
  const int frames_, tubelet_;
  const std::int64_t tokens_;
};

VjepaConfig vjepa_config(const HfComponent& folder, const PictureInput& input) {
  const std::string what = fmt::format("'{}'", folder.config_path());
  const Json& json = folder.config();
  PictureTowerConfig fallback;
  fallback.stack = {.width = 1024, .heads = 16, .layers = 24, .epsilon = 1e-6f};
  fallback.patch = 16;
  VjepaConfig c;
  as_usage([&] {
    // "image_size", which some files have too, is not read by the model.
    fallback.image_size = positive_field(json, "crop_size", 256, what);
    c.tower = PictureTowerConfig::from_json(json, fallback, "gelu", what);
    c.tower.image_size = fallback.image_size;
    if (!get_bool(json, "qkv_bias").value_or(true))
      fail_usage("{}: a V-JEPA 2 without \"qkv_bias\" is not supported", what);
    if (const int channels = positive_field(json, "in_chans", 3, what); channels != 3)
      fail_usage("{}: its frames have {} channels, not 3", what, channels);
    const double ratio = get_number(json, "mlp_ratio").value_or(4);
    if (!(ratio > 0 && ratio <= 64)) fail_usage("{}: \"mlp_ratio\" is {}", what, ratio);
    c.tower.stack.feed_forward = static_cast<int>(c.tower.stack.width * ratio);
    c.tubelet = positive_field(json, "tubelet_size", 2, what);
    c.frames = positive_field(json, "frames_per_clip", 64, what);
  });
  if (input.frames > 0) c.frames = input.frames;
  c.tower.stack.check(what);
  c.tower.need_size(input.size(), what);
  if (c.tower.patch > c.tower.image_size)
    fail_usage("{}: patches of {} do not make pictures of {}", what, c.tower.patch,
               c.tower.image_size);
  if (const int dim = c.tower.stack.width / c.tower.stack.heads;
      dim % 2 != 0 || dim < 6 || dim > kMostHeadDim)
    fail_usage("{}: its heads have {} elements, and an even number from 6 to {} is supported", what,
               dim, kMostHeadDim);
  if (c.frames % c.tubelet != 0 || c.frames > kMostVideoFrames)
    fail_usage("{}: the model takes a multiple of {} frames, at most {}, and not {}", what,
               c.tubelet, kMostVideoFrames, c.frames);
  if (c.tokens() > kMostClipTokens)
    fail_usage("{}: {} frames have {} tokens, and at most {} are supported", what, c.frames,
               c.tokens(), kMostClipTokens);
  return c;
}

}  // namespace

std::unique_ptr<PictureTower> make_vjepa2(const HfComponent& folder, const PictureInput& input,
                                          DType compute, Device device) {
  VjepaConfig config = vjepa_config(folder, input);
  config.tower.stack.turns = vjepa_angles(config, device);
  return std::make_unique<Vjepa2>(config, folder, compute, device);
}

}  // namespace vfm::models
