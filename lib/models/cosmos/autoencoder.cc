// Shape letters: T H W pixels, t h w latent, C latent channels.
// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/autoencoder.h"

#include <algorithm>

#include "base/error.h"
#include "models/cosmos/blocks.h"
#include "ops/conv/haar.h"

namespace vfm::models {

using cosmos::Maker;
using cosmos::Pass;
using ops::Tape;

namespace {

// Whether a block at this depth attends: by its resolution when the network sees pictures of
// config.resolution.
bool attends(const CosmosConfig& c, int resolution) {
  return std::ranges::find(c.attention_resolutions, resolution) != c.attention_resolutions.end();
}

struct Encoder {
  Encoder(const Maker& make, const CosmosConfig& c)
      : config(c),
        conv_in(make, "encoder.conv_in", c.in_channels * c.patch_size * c.patch_size * c.patch_size,
                c.encoder_block_out_channels.front()) {
    const auto& widths = c.encoder_block_out_channels;
    int resolution = c.resolution / c.patch_size;
    for (int i = 0; i < c.encoder_blocks(); ++i) {
      const std::string name = "encoder.down_blocks." + std::to_string(i);
      const auto at = static_cast<std::size_t>(i);
      stages.emplace_back(make, name, widths[at], widths[at + 1], c.num_layers,
                          attends(c, resolution));
      downs.emplace_back();
      if (c.halves_space(i))
        downs.back().emplace(make, name + ".downsamplers.0", widths[at + 1], c.halves_time(i));
      resolution /= 2;
    }
    middle.emplace(make, "encoder.mid_block", widths.back());
    norm_out.emplace(make, "encoder.norm_out.norm", widths.back());
    conv_out.emplace(make, "encoder.conv_out", widths.back(), c.z_channels);
    quant.emplace(make, "quant_conv", c.z_channels, c.latent_channels, 1, 1);
  }

  Tensor forward(Pass& pass, const Tensor& pixels, DType compute) const {
    Tensor x = ops::haar_analysis(pass.tape, pixels, config.patch_size, pass.start, compute);
    x = conv_in.forward(pass, std::move(x));
    for (std::size_t i = 0; i < stages.size(); ++i) {
      x = stages[i].forward(pass, std::move(x));
      if (downs[i]) x = downs[i]->forward(pass, std::move(x));
    }
    x = middle->forward(pass, std::move(x));
    x = conv_out->forward(pass, norm_out->forward(pass, x, true));
    return ops::conv_point(pass.tape, x, quant->w->op(pass.tape), quant->bias->op(pass.tape));
  }

  const CosmosConfig& config;
  cosmos::Projection conv_in;
  std::deque<cosmos::Stage> stages;
  std::deque<std::optional<cosmos::Downsample>> downs;
  std::optional<cosmos::Middle> middle;
  std::optional<cosmos::Norm> norm_out;
  std::optional<cosmos::Projection> conv_out;
  std::optional<cosmos::Kernel> quant;
};

struct Decoder {
  Decoder(const Maker& make, const CosmosConfig& c)
      : config(c),
        post_quant(make, "post_quant_conv", c.latent_channels, c.z_channels, 1, 1),
        widths(c.decode_block_out_channels.rbegin(), c.decode_block_out_channels.rend()),
        conv_in(make, "decoder.conv_in", c.z_channels, widths.front()),
        middle(make, "decoder.mid_block", widths.front()) {
    int resolution = c.resolution / c.patch_size >> (widths.size() - 2);
    for (int i = 0; i < c.decoder_blocks(); ++i) {
      const std::string name = "decoder.up_blocks." + std::to_string(i);
      const auto at = static_cast<std::size_t>(i);
      stages.emplace_back(make, name, widths[at], widths[at + 1], c.num_layers + 1,
                          attends(c, resolution));
      ups.emplace_back();
      if (c.doubles_space(i))
        ups.back().emplace(make, name + ".upsamplers.0", widths[at + 1], c.doubles_time(i));
      resolution *= 2;
    }
    norm_out.emplace(make, "decoder.norm_out.norm", widths.back());
    conv_out.emplace(make, "decoder.conv_out", widths.back(),
                     c.out_channels * c.patch_size * c.patch_size * c.patch_size);
  }

  Tensor forward(Pass& pass, const Tensor& latents, DType compute) const {
    Tensor x = latents;
    if (compute != DType::f32) {
      // A conversion that gradients flow back through.
      x = latents.to(compute);
      pass.tape.record(x, {latents}, [latents, x](Tape& t) { t.accumulate(latents, t.take(x)); });
    }
    x = ops::conv_point(pass.tape, x, post_quant.w->op(pass.tape), post_quant.bias->op(pass.tape));
    x = conv_in.forward(pass, std::move(x));
    x = middle.forward(pass, std::move(x));
    for (std::size_t i = 0; i < stages.size(); ++i) {
      x = stages[i].forward(pass, std::move(x));
      if (ups[i]) x = ups[i]->forward(pass, std::move(x));
    }
    x = conv_out->forward(pass, norm_out->forward(pass, x, true));
    return ops::haar_synthesis(pass.tape, x, config.patch_size, pass.start);
  }

  const CosmosConfig& config;
  cosmos::Kernel post_quant;
  std::vector<int> widths;  // from the latent outwards
  cosmos::Projection conv_in;
  cosmos::Middle middle;
  std::deque<cosmos::Stage> stages;
  std::deque<std::optional<cosmos::Upsample>> ups;
  std::optional<cosmos::Norm> norm_out;
  std::optional<cosmos::Projection> conv_out;
};

}  // namespace

struct CosmosAutoencoder::State {
  State(const CosmosConfig& c, const nn::WeightOptions& options)
      : config(c),
        compute(options.compute),
        device(options.device),
        encoder(Maker{weights, options}, config),
        decoder(Maker{weights, options}, config) {
    for (nn::Weight& weight : weights)
      for (nn::Parameter& parameter : weight.parameters())
        parameters.push_back(&parameter);
  }

  Tensor encode(Pass& pass, const Tensor& pixels) const {
    const int time = config.temporal_compression_ratio, space = config.spatial_compression_ratio;
    const std::int64_t frames = pixels.dims() == 4 ? pixels.size(0) - (pass.start ? 1 : 0) : -1;
    if (frames < 0 || frames % time || pixels.size(0) == 0 || pixels.size(1) % space ||
        pixels.size(2) % space || pixels.size(3) != config.in_channels)
      fail("cannot encode {}: frames must be {}multiples of {}, rows and columns of {}",
           to_string(pixels.shape()), pass.start ? "1 and " : "", time, space);
    const Tensor x = encoder.forward(pass, pixels, compute);
    if (x.dtype() == DType::f32) return x;
    const Tensor latents = x.to(DType::f32);
    pass.tape.record(latents, {x}, [x, latents](Tape& t) { t.accumulate(x, t.take(latents)); });
    return latents;
  }

  Tensor decode(Pass& pass, const Tensor& latents) const {
    if (latents.dims() != 4 || latents.elements() == 0 ||
        latents.size(3) != config.latent_channels || latents.dtype() != DType::f32)
      fail("cannot decode {} {}: {} channels are needed", dtype_name(latents.dtype()),
           to_string(latents.shape()), config.latent_channels);
    return decoder.forward(pass, latents, compute);
  }

  CosmosConfig config;
  bool recompute = false;
  DType compute;
  Device device;
  std::deque<nn::Weight> weights;
  nn::ParameterList parameters;
  Encoder encoder;
  Decoder decoder;
};

CosmosAutoencoder::CosmosAutoencoder(const CosmosConfig& config, std::uint64_t seed, DType compute,
                                     Device device, bool trainable) {
  config.validate("the tokenizer");
  nn::WeightOptions options;
  options.compute = compute;
  options.trainable = trainable;
  options.seed = seed;
  options.device = device;
  state_ = std::make_unique<State>(config, options);
}

CosmosAutoencoder::~CosmosAutoencoder() = default;
CosmosAutoencoder::CosmosAutoencoder(CosmosAutoencoder&&) noexcept = default;

const CosmosConfig& CosmosAutoencoder::config() const {
  return state_->config;
}
Device CosmosAutoencoder::device() const {
  return state_->device;
}
const nn::ParameterList& CosmosAutoencoder::parameters() const {
  return state_->parameters;
}

void CosmosAutoencoder::set_recompute(bool recompute) {
  state_->recompute = recompute;
}

// Of both ways every parameter is watched: those that nothing reaches get a gradient of zero.
Tensor CosmosAutoencoder::encode(Tape& tape, const Tensor& pixels) const {
  for (const nn::Weight& weight : state_->weights)
    weight.watch(tape);
  Pass pass{.tape = tape, .recompute = state_->recompute};
  return state_->encode(pass, pixels);
}

Tensor CosmosAutoencoder::decode(Tape& tape, const Tensor& latents) const {
  for (const nn::Weight& weight : state_->weights)
    weight.watch(tape);
  Pass pass{.tape = tape, .recompute = state_->recompute};
  return state_->decode(pass, latents);
}

Tensor CosmosAutoencoder::encode_part(const SpatialExchange& exchange, const Tensor& pixels) const {
  Tape silent(false);
  Pass pass{.tape = silent, .exchange = &exchange};
  return state_->encode(pass, pixels);
}

Tensor CosmosAutoencoder::decode_part(const SpatialExchange& exchange,
                                      const Tensor& latents) const {
  Tape silent(false);
  Pass pass{.tape = silent, .exchange = &exchange};
  return state_->decode(pass, latents);
}

struct CosmosAutoencoder::Stream::State {
  const CosmosAutoencoder::State& model;
  bool encodes;
  cosmos::StreamState kept;
  const SpatialExchange* bands = nullptr;
  TimeExchange* chunks = nullptr;
};

CosmosAutoencoder::Stream::Stream(std::unique_ptr<State> state) : state_(std::move(state)) {}
CosmosAutoencoder::Stream::~Stream() = default;
CosmosAutoencoder::Stream::Stream(Stream&&) noexcept = default;

Tensor CosmosAutoencoder::Stream::push(const Tensor& frames, bool last) {
  if (state_->kept.ended) fail("the video has ended");
  Tape silent(false);
  TimeExchange* const chunks = state_->chunks;
  Pass pass{.tape = silent,
            .start = chunks ? chunks->first() : !state_->kept.begun,
            .last = last,
            .stream = &state_->kept,
            .exchange = state_->bands,
            .time = chunks};
  const Tensor made =
      state_->encodes ? state_->model.encode(pass, frames) : state_->model.decode(pass, frames);
  state_->kept.begun = true;
  state_->kept.ended = last;
  return made;
}

CosmosAutoencoder::Stream CosmosAutoencoder::encode_stream() const {
  return Stream(std::make_unique<Stream::State>(Stream::State{*state_, true, {}}));
}

CosmosAutoencoder::Stream CosmosAutoencoder::decode_stream() const {
  return Stream(std::make_unique<Stream::State>(Stream::State{*state_, false, {}}));
}

CosmosAutoencoder::Stream CosmosAutoencoder::decode_stream(const SpatialExchange* bands,
                                                           TimeExchange* chunks) const {
  return Stream(std::make_unique<Stream::State>(Stream::State{*state_, false, {}, bands, chunks}));
}

}  // namespace vfm::models
