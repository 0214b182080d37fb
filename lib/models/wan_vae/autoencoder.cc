// SPDX-License-Identifier: Apache-2.0
#include "models/wan_vae/autoencoder.h"

#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "models/wan_vae/blocks.h"
#include "ops/pointwise/add.h"

namespace vfm::models {

using wan_vae::LayerState;
using wan_vae::Maker;
using wan_vae::Pass;

namespace {

// Wan 2.1 counts the blocks of its encoder through; Wan 2.2 level by level.
struct DownLevel {
  DownLevel(const Maker& make, const WanVaeConfig& c, int level, int& block)
      : shortcut(c.is_residual),
        out(c.encoder_out(level)),
        patch{c.halves_time(level) ? 2 : 1, c.halves_space(level) ? 2 : 1},
        layer(make.layer()) {
    const std::string down = "encoder.down_blocks.";
    const std::string own = down + std::to_string(level);
    int in = c.encoder_in(level);
    for (int i = 0; i < c.num_res_blocks; ++i, in = out)
      resnets.emplace_back(
          make, shortcut ? own + ".resnets." + std::to_string(i) : down + std::to_string(block++),
          in, out);
    if (c.halves_space(level))
      halving.emplace(make, shortcut ? own + ".downsampler" : down + std::to_string(block++), out,
                      c.halves_time(level));
  }

  /// Undefined for the first frame of a pair.
  Tensor forward(const Pass& pass, Tensor x) const {
    const Tensor means = shortcut ? means_of(pass.of(layer), x) : Tensor();
    if (shortcut && !halving) {
      for (const wan_vae::Resnet& resnet : resnets)
        x = resnet.forward(pass, std::move(x));
      ops::add_in_place(x, means);
      return x;
    }
    for (const wan_vae::Resnet& resnet : resnets)
      x = resnet.forward(pass, std::move(x));
    return halving ? halving->forward(pass, x, means) : x;
  }

  // Means of the patches of x, if this frame completes them. Before the first frame is a zero.
  Tensor means_of(LayerState& state, const Tensor& x) const {
    const bool alone = patch.frames == 1, first = state.seen++ == 0;
    const int frame = alone ? 0 : first || state.shortcut.defined() ? 1 : 0;
    Tensor means = std::move(state.shortcut);
    state.shortcut = Tensor();
    const Shape shape{x.size(0) / patch.space, x.size(1) / patch.space, out};
    if (!means.defined())
      means = frame == 1 ? Tensor::zeros(shape, x.dtype(), x.device())
                         : Tensor(shape, x.dtype(), x.device());
    ops::pool_patches(x, means, patch, frame);
    if (frame + 1 == patch.frames) return means;
    state.shortcut = std::move(means);
    return {};
  }

  bool shortcut;
  int out;
  ops::PatchShape patch;
  std::size_t layer;
  std::deque<wan_vae::Resnet> resnets;
  std::optional<wan_vae::Downsample> halving;
};

struct UpLevel {
  UpLevel(const Maker& make, const WanVaeConfig& c, int level)
      : shortcut(c.is_residual && c.halves_space(level)),
        patch{c.doubles_time(level) ? 2 : 1, 2},
        layer(make.layer()) {
    const std::string own = "decoder.up_blocks." + std::to_string(level);
    const int out = c.decoder_out(level);
    int in = c.decoder_in(level);
    for (int i = 0; i <= c.num_res_blocks; ++i, in = out)
      resnets.emplace_back(make, own + ".resnets." + std::to_string(i), in, out);
    if (c.halves_space(level))
      doubling.emplace(make, own + (c.is_residual ? ".upsampler" : ".upsamplers.0"), out,
                       c.is_residual ? out : out / 2, c.doubles_time(level));
  }

  /// Calls next(frame, whether no frame follows) for each frame that x becomes.
  template <class Next>
  void forward(const Pass& pass, Tensor x, const Next& next) const {
    const bool first = pass.of(layer).seen++ == 0;
    Tensor coarse;
    if (shortcut) coarse = x;
    for (const wan_vae::Resnet& resnet : resnets)
      x = resnet.forward(pass, std::move(x));
    if (!doubling) return next(std::move(x), pass.last);
    std::vector<Tensor> frames = doubling->in_time(pass, std::move(x));
    for (std::size_t i = 0; i < frames.size(); ++i) {
      // Of the first frame the shortcut makes as many as of others, and drops those in front.
      const int frame = first ? patch.frames - 1 : static_cast<int>(i);
      Tensor wide = doubling->in_space(pass, frames[i], coarse, patch, frame);
      frames[i] = Tensor();
      const bool last = i + 1 == frames.size();
      if (last) coarse = Tensor();
      next(std::move(wide), last && pass.last);
    }
  }

  bool shortcut;
  ops::PatchShape patch;
  std::size_t layer;
  std::deque<wan_vae::Resnet> resnets;
  std::optional<wan_vae::Upsample> doubling;
};

struct EncoderNetwork {
  EncoderNetwork(const Maker& make, const WanVaeConfig& c)
      : latent(c.z_dim), conv_in(make, "encoder.conv_in", c.in_channels, c.base_dim) {
    int block = 0;
    for (int i = 0; i < c.levels(); ++i)
      levels.emplace_back(make, c, i, block);
    const int last = c.encoder_out(c.levels() - 1);
    middle.emplace(make, "encoder.mid_block", last);
    norm_out.emplace(make, "encoder.norm_out", last);
    conv_out.emplace(make, "encoder.conv_out", last, 2 * c.z_dim);
    quant.emplace(make, "quant_conv", Shape{2 * c.z_dim, 2 * c.z_dim, 1, 1, 1});
  }

  Tensor forward(const Pass& pass, const Tensor& frame) const {
    Tensor x = conv_in.forward(pass, frame);
    for (const DownLevel& level : levels) {
      x = level.forward(pass, std::move(x));
      if (!x.defined()) return {};
    }
    x = middle->forward(pass, std::move(x));
    x = conv_out->forward(pass, x, *norm_out);
    return quant->at_points(x, 0, latent);
  }

  int latent;
  wan_vae::CausalConv conv_in;
  std::deque<DownLevel> levels;
  std::optional<wan_vae::Middle> middle;
  std::optional<wan_vae::Norm> norm_out;
  std::optional<wan_vae::CausalConv> conv_out;
  std::optional<wan_vae::Kernel> quant;
};

struct DecoderNetwork {
  DecoderNetwork(const Maker& make, const WanVaeConfig& c)
      : post_quant(make, "post_quant_conv", {c.z_dim, c.z_dim, 1, 1, 1}),
        conv_in(make, "decoder.conv_in", c.z_dim, c.decoder_in(0)),
        middle(make, "decoder.mid_block", c.decoder_in(0)) {
    for (int i = 0; i < c.levels(); ++i)
      levels.emplace_back(make, c, i);
    const int last = c.decoder_out(c.levels() - 1);
    norm_out.emplace(make, "decoder.norm_out", last);
    conv_out.emplace(make, "decoder.conv_out", last, c.out_channels);
  }

  template <class Sink>
  void forward(const Pass& pass, const Tensor& latent, const Sink& sink) const {
    Tensor x = post_quant.at_points(latent, 0, latent.size(2));
    x = conv_in.forward(pass, x);
    finish(pass, middle.forward(pass, std::move(x)), 0, sink);
  }

  // The levels from `level` on. Each frame goes all the way before the next one begins.
  template <class Sink>
  void finish(const Pass& pass, Tensor x, std::size_t level, const Sink& sink) const {
    if (level == levels.size()) return sink(conv_out->forward(pass, x, *norm_out));
    levels[level].forward(pass, std::move(x), [&](Tensor frame, bool last) {
      finish({pass.states, pass.band_pixels, last, pass.ranks}, std::move(frame), level + 1, sink);
    });
  }

  wan_vae::Kernel post_quant;
  wan_vae::CausalConv conv_in;
  wan_vae::Middle middle;
  std::deque<UpLevel> levels;
  std::optional<wan_vae::Norm> norm_out;
  std::optional<wan_vae::CausalConv> conv_out;
};

}  // namespace

struct WanAutoencoder::State {
  State(const WanVaeConfig& c, const nn::WeightOptions& options)
      : config(c),
        compute(options.compute),
        device(options.device),
        encoder(Maker{weights, options, layers}, config),
        decoder(Maker{weights, options, layers}, config) {
    for (nn::Weight& weight : weights)
      for (nn::Parameter& parameter : weight.parameters())
        parameters.push_back(&parameter);
  }

  void arrange() const {
    std::call_once(arranged, [&] { wan_vae::arrange_kernels(weights); });
  }

  WanVaeConfig config;
  DType compute;
  Device device;
  mutable std::once_flag arranged;
  std::deque<nn::Weight> weights;
  std::size_t layers = 0;
  nn::ParameterList parameters;
  EncoderNetwork encoder;
  DecoderNetwork decoder;
};

WanAutoencoder::WanAutoencoder(const WanVaeConfig& config, DType compute, Device device) {
  config.validate("the tokenizer");
  nn::WeightOptions options;
  options.compute = compute;
  options.trainable = false;
  options.device = device;
  state_ = std::make_unique<State>(config, options);
}

WanAutoencoder::~WanAutoencoder() = default;
WanAutoencoder::WanAutoencoder(WanAutoencoder&&) noexcept = default;

const WanVaeConfig& WanAutoencoder::config() const {
  return state_->config;
}
Device WanAutoencoder::device() const {
  return state_->device;
}
const nn::ParameterList& WanAutoencoder::parameters() const {
  return state_->parameters;
}

struct WanAutoencoder::Encoder::State {
  const WanAutoencoder::State& model;
  std::vector<LayerState> layers;
  std::int64_t band_pixels;
};

struct WanAutoencoder::Decoder::State {
  const WanAutoencoder::State& model;
  std::vector<LayerState> layers;
  std::int64_t band_pixels;
  const SpatialExchange* ranks;
};

WanAutoencoder::Encoder::Encoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
WanAutoencoder::Encoder::~Encoder() = default;
WanAutoencoder::Encoder::Encoder(Encoder&&) noexcept = default;
WanAutoencoder::Decoder::Decoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
WanAutoencoder::Decoder::~Decoder() = default;
WanAutoencoder::Decoder::Decoder(Decoder&&) noexcept = default;

Tensor WanAutoencoder::Encoder::push(const Tensor& frame, bool last) {
  const WanAutoencoder::State& model = state_->model;
  const int step = 1 << (model.config.levels() - 1);
  if (frame.dims() != 3 || frame.elements() == 0 || frame.dtype() != DType::f32 ||
      frame.size(0) % step || frame.size(1) % step || frame.size(2) != model.config.in_channels)
    fail("cannot encode a frame {} {}: rows and columns must be multiples of {}",
         dtype_name(frame.dtype()), to_string(frame.shape()), step);
  const Tensor latent =
      model.encoder.forward({state_->layers, state_->band_pixels, last}, frame.to(model.compute));
  return latent.defined() ? latent.to(DType::f32) : latent;
}

void WanAutoencoder::Decoder::push(const Tensor& latent, bool last, const Sink& sink) {
  const WanAutoencoder::State& model = state_->model;
  if (latent.dims() != 3 || latent.elements() == 0 || latent.dtype() != DType::f32 ||
      latent.size(2) != model.config.z_dim)
    fail("cannot decode a frame {} {}: {} channels are needed", dtype_name(latent.dtype()),
         to_string(latent.shape()), model.config.z_dim);
  model.decoder.forward({state_->layers, state_->band_pixels, last, state_->ranks},
                        latent.to(model.compute),
                        [&](const Tensor& frame) { sink(frame.to(DType::f32)); });
}

WanAutoencoder::Encoder WanAutoencoder::encoder(std::int64_t band_pixels) const {
  state_->arrange();
  return Encoder(std::make_unique<Encoder::State>(
      Encoder::State{*state_, std::vector<LayerState>(state_->layers), band_pixels}));
}

WanAutoencoder::Decoder WanAutoencoder::decoder(std::int64_t band_pixels,
                                                const SpatialExchange* ranks) const {
  state_->arrange();
  return Decoder(std::make_unique<Decoder::State>(
      Decoder::State{*state_, std::vector<LayerState>(state_->layers), band_pixels, ranks}));
}

}  // namespace vfm::models
