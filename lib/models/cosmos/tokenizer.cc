// Shape letters: T H W pixels, t h w latent, C latent channels.
// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "dist/bytes.h"
#include "models/folder/load_tensors.h"
#include "models/tokenizer_family.h"
#include "models/tokenizer_folder.h"
#include "ops/picture/scale_picture.h"
#include "tensor/device.h"

namespace vfm::models {
namespace {

// latent_statistics(), and with `says` a word where they are not the folder's own.
std::optional<LatentScale> statistics_of(const HfComponent& component, bool says) {
  std::optional<LatentScale> statistics =
      latent_statistics(component.config(), "'" + component.folder() + "'");
  if (says && statistics && !component.says("latents_mean"))
    log_warning(
        "'{}' does not say latents_mean and latents_std: those of NVIDIA's Cosmos-1.0 CV8x8x8 are "
        "taken, as diffusers does. If these weights are others, write null for both into its "
        "config.json, and they are measured",
        component.config_path());
  return statistics;
}

// A tokenizer's folder and the configuration of its network, before its weights are read.
struct Opened : TokenizerFolder {
  Opened(const TokenizerConfig& config, Device device) : TokenizerFolder(config, device) {
    const std::string what = "'" + model.config_path() + "'";
    network = cosmos_config_from_json(model.config(), what);
    if (network.discrete() != (config.name == kCosmosDiscrete))
      fail_usage("{}: a {} with {} levels", what, config.name, network.levels.size());
  }
  CosmosConfig network;
};

// Some rows of some frames.
struct Piece {
  std::int64_t frame, end_frame, row, end_row;
};

// A piece of planar values (C, T, H, W) as [frames, rows, W, C].
Tensor take_piece(std::span<const float> planar, std::int64_t channels, std::int64_t frames,
                  std::int64_t height, std::int64_t width, const Piece& piece) {
  const std::int64_t rows = piece.end_row - piece.row, count = piece.end_frame - piece.frame;
  const Tensor out({count, rows, width, channels});
  float* const to = out.data<float>();
#pragma omp parallel for schedule(static) if (count * rows * width > 16384)
  for (std::int64_t line = 0; line < count * rows; ++line) {
    const std::int64_t t = piece.frame + line / rows, y = piece.row + line % rows;
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < channels; ++c)
        to[(line * width + x) * channels + c] =
            planar[static_cast<std::size_t>(((c * frames + t) * height + y) * width + x)];
  }
  return out;
}

// The other way: [t, rows, W, C] to its place in planar values, from that frame and row on.
void put_piece(const Tensor& from, std::span<float> planar, std::int64_t frames,
               std::int64_t height, std::int64_t frame, std::int64_t row) {
  const std::int64_t rows = from.size(1), width = from.size(2), channels = from.size(3);
  const float* const at = from.data<float>();
#pragma omp parallel for schedule(static) if (from.elements() > 16384)
  for (std::int64_t line = 0; line < from.size(0) * rows; ++line) {
    const std::int64_t t = frame + line / rows, y = row + line % rows;
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < channels; ++c)
        planar[static_cast<std::size_t>(((c * frames + t) * height + y) * width + x)] =
            at[(line * width + x) * channels + c];
  }
}

// The pixels of a chunk, planar, on rank 0: bands of the ranks from `first` on, of which rank 0 has
// its `own`.
std::vector<float> gather_chunk(dist::Group& group, const SpatialExchange& bands, int first,
                                std::int64_t frames, std::int64_t height, const Tensor& own) {
  const std::int64_t width = own.size(2), colours = own.size(3);
  const std::int64_t scale = height / bands.end(bands.parts() - 1);
  std::vector<float> planar(static_cast<std::size_t>(colours * frames * height * width));
  for (int band = 0; band < bands.parts(); ++band) {
    const std::int64_t row = bands.begin(band) * scale, rows = bands.end(band) * scale - row;
    Tensor pixels = own;
    if (first + band > 0) {
      pixels = Tensor({frames, rows, width, colours});
      group.receive(first + band, pixels).wait();
    }
    put_piece(pixels, planar, frames, height, 0, row);
  }
  return planar;
}

void check_size(std::size_t have, std::int64_t channels, int frames, int height, int width) {
  if (frames < 1 || height < 1 || width < 1 ||
      have != static_cast<std::size_t>(channels) * frames * height * width)
    fail("{} values are not {} x {} x {} x {}", have, channels, frames, height, width);
}

TokenizerFacts inspect_cosmos(const TokenizerConfig& config, Device device) {
  const Opened opened(config, device);
  const CosmosConfig& network = opened.network;
  const CosmosAutoencoder model(network, 0, DType::bf16, Device::cpu, false);
  const io::TensorSet& weights = opened.model.tensors();
  check_tensors(weights, model.parameters());
  if (!config.hash.empty()) opened.hash(config);
  TokenizerFacts facts;
  facts.channels = network.latent_channels;
  facts.time_factor = network.temporal_compression_ratio;
  facts.space_factor = network.spatial_compression_ratio;
  if (network.discrete()) facts.vocabulary = Fsq(network.levels).codes();
  facts.file_bytes = static_cast<double>(weights.bytes());
  facts.loading_bytes = static_cast<double>(loading_bytes(weights));
  facts.cost = [network, device, compute = opened.compute](const TokenizerWork& work) {
    const CosmosWork kind = work.encodes ? CosmosWork::encode : CosmosWork::decode;
    const CosmosSplit split =
        cosmos_split(network, kind, work.frames, work.height, work.width,
                     {.memory = static_cast<double>(work.memory)}, device, compute, work.ranks);
    const auto cost = [&](int bands) {
      return cosmos_cost(network, kind, work.frames, work.height, work.width, split.step, device,
                         compute, bands);
    };
    TokenizerCost all{cost(1), split};
    if (split.bands > 1) {
      const PartCost band = cost(split.bands);
      all.cost.activation_bytes = band.activation_bytes;
      all.cost.held_bytes = band.held_bytes;
      all.cost.host_bytes = band.host_bytes;
    }
    return all;
  };
  return facts;
}

TokenizerConfig settle_cosmos(const TokenizerConfig& config) {
  TokenizerConfig settled = config;
  settled.hash = Opened(config, Device::cpu).hash(config);
  return settled;
}

std::unique_ptr<VideoTokenizer> make_cosmos(const TokenizerConfig& config, Device device,
                                            std::uint64_t memory, const LoadingRanks& ranks) {
  return std::make_unique<CosmosTokenizer>(
      config, device, CosmosRoom{.memory = static_cast<double>(memory)}, ranks);
}

LatentFacts latents_cosmos(const Json& config, std::string_view what) {
  const CosmosConfig network = cosmos_config_from_json(config, what);
  LatentScale plain{std::vector<double>(static_cast<std::size_t>(network.latent_channels), 0.0),
                    std::vector<double>(static_cast<std::size_t>(network.latent_channels), 1.0)};
  return {latent_statistics(config, what).value_or(std::move(plain)),
          network.temporal_compression_ratio, network.spatial_compression_ratio};
}

constexpr TokenizerFamily cosmos_family(std::string_view name, bool in_diffusers) {
  return {.name = name,
          .keys = {"path", "hash", "compute"},
          .network = true,
          .in_diffusers = in_diffusers,
          .trained = true,
          .inspect = inspect_cosmos,
          .settle = settle_cosmos,
          .make = make_cosmos,
          .latents = latents_cosmos};
}

}  // namespace

constinit const TokenizerFamily kCosmosFamily = cosmos_family(kCosmosContinuous, true);
constinit const TokenizerFamily kCosmosDiscreteFamily = cosmos_family(kCosmosDiscrete, false);

CosmosTokenizer::CosmosTokenizer(const TokenizerConfig& config, Device device, CosmosRoom room,
                                 const LoadingRanks& ranks)
    : device_(device), room_(room) {
  std::optional<Opened> opened;
  ranks.agree([&] {
    opened.emplace(config, device);
    folder_ = opened->folder;
    compute_ = opened->compute;
    const CosmosConfig& network = opened->network;
    const bool first = ranks.rank() == 0;
    if (!network.discrete()) statistics_ = statistics_of(opened->model.component(), first);
    opened->model.verify(ranks.rank(), ranks.size());
    if (first) hash_ = opened->hash(config);
    model_.emplace(network, 0, compute_, device_, false);
    check_tensors(opened->model.weights(), model_->parameters());
    if (network.discrete()) fsq_.emplace(network.levels);
  });
  if (ranks.group) hash_ = dist::broadcast_bytes(*ranks.group, hash_, 0);
  if (ranks.group)
    load_parameters(opened->model.weights(), model_->parameters(), *ranks.group);
  else
    load_parameters(opened->model.weights(), model_->parameters());
}

// On the CPU f32 goes without saying.
TokenizerConfig CosmosTokenizer::config() const {
  const char* const full = device_ == Device::cpu ? "" : "f32";
  return {.name = fsq_ ? kCosmosDiscrete : kCosmosContinuous,
          .path = folder_,
          .hash = hash_,
          .compute = compute_ == DType::bf16 ? "bf16" : full};
}

CosmosSplit CosmosTokenizer::split(CosmosWork work, int frames, int height, int width,
                                   int ranks) const {
  return cosmos_split(model_->config(), work, frames, height, width, room_, device_, compute_,
                      ranks);
}

void CosmosTokenizer::check_memory(bool encodes, int frames, int height, int width,
                                   int ranks) const {
  if (room_.memory > 0)
    split(encodes ? CosmosWork::encode : CosmosWork::decode, frames, height, width, ranks);
}

std::vector<float> CosmosTokenizer::encode(std::span<const float> pixels, int frames, int height,
                                           int width) const {
  check_size(pixels.size(), 3, frames, height, width);
  const auto chunk = [&](std::int64_t from, std::int64_t to) {
    return take_piece(pixels, 3, frames, height, width, {from, to, 0, height}).to(device_);
  };
  return encode_chunks(chunk, frames, height, width);
}

std::vector<float> CosmosTokenizer::encode_bytes(const Tensor& rgb) const {
  if (rgb.dims() != 4 || rgb.dtype() != DType::u8 || rgb.size(3) != 3)
    fail("pictures of {} {}", dtype_name(rgb.dtype()), to_string(rgb.shape()));
  const auto chunk = [&](std::int64_t from, std::int64_t to) {
    return ops::picture_pixels(rgb.rows(from, to).to(device_));
  };
  return encode_chunks(chunk, static_cast<int>(rgb.size(0)), static_cast<int>(rgb.size(1)),
                       static_cast<int>(rgb.size(2)));
}

std::vector<float> CosmosTokenizer::encode_chunks(const Chunk& chunk, int frames, int height,
                                                  int width) const {
  const int time = time_factor(), space = space_factor(), total = 1 + (frames - 1) / time;
  const int rows = height / space, columns = width / space;
  const std::int64_t step = split(CosmosWork::encode, total, rows, columns).step;
  std::vector<float> latents(static_cast<std::size_t>(channels()) * total * rows * columns);
  const auto turn = take_turn(device_);
  auto stream = model_->encode_stream();
  for (std::int64_t at = 0; at < total; at += step) {
    check_stop();
    const std::int64_t end = std::min<std::int64_t>(total, at + step);
    const std::int64_t from = at == 0 ? 0 : 1 + (at - 1) * time;
    const std::int64_t to = end == total ? frames : 1 + (end - 1) * time;
    put_piece(stream.push(chunk(from, to), end == total).to(Device::cpu), latents, total, rows, at,
              0);
  }
  // As codes they would look like any others.
  if (!std::ranges::all_of(latents, [](float value) { return std::isfinite(value); }))
    fail("the tokenizer '{}' makes values that are not finite: its weights are damaged", folder_);
  if (!fsq_) return latents;
  const std::size_t places = latents.size() / fsq_->dimensions();
  for (std::size_t i = 0; i < places; ++i)
    fsq_->values(fsq_->encode(latents.data() + i, places), latents.data() + i, places);
  return latents;
}

void CosmosTokenizer::decode_stream(std::span<const float> latents, int frames, int height,
                                    int width, const FrameSink& sink) const {
  check_size(latents.size(), channels(), frames, height, width);
  const std::int64_t step = split(CosmosWork::decode, frames, height, width).step;
  auto stream = model_->decode_stream();
  for (std::int64_t at = 0; at < frames; at += step) {
    check_stop();
    const std::int64_t end = std::min<std::int64_t>(frames, at + step);
    const Tensor chunk =
        take_piece(latents, channels(), frames, height, width, {at, end, 0, height});
    Tensor pixels;
    {
      const auto turn = take_turn(device_);
      pixels = stream.push(chunk.to(device_), end == frames).to(Device::cpu);
    }
    std::vector<float> planar(pixels.floats().size());
    put_piece(pixels, planar, pixels.size(0), pixels.size(1), 0, 0);
    sink(planar, static_cast<int>(pixels.size(0)));
  }
}

void CosmosTokenizer::decode_together(dist::Group& group, std::span<const float> latents,
                                      int frames, int height, int width,
                                      const FrameSink& sink) const {
  check_size(latents.size(), channels(), frames, height, width);
  const CosmosSplit split = this->split(CosmosWork::decode, frames, height, width, group.size());
  const int rank = group.rank(), time = time_factor();
  if (split.ranks() == 1 && rank == 0) return decode_stream(latents, frames, height, width, sink);
  if (rank >= split.ranks()) return;
  const int turn = rank / split.bands;
  const SpatialExchange bands(RankLine(group, turn * split.bands, 1, split.bands), height);
  TimeExchange rounds(RankLine(group, rank % split.bands, split.bands, split.turns),
                      split.chunks(frames));
  auto stream = model_->decode_stream(&bands, split.turns > 1 ? &rounds : nullptr);
  std::exception_ptr failure;  // of the sink: the others know nothing of it
  while (rounds.next_round()) {
    check_stop();
    if (!rounds.takes_part()) break;
    const std::int64_t at = (rounds.begin() + turn) * split.step;
    const std::int64_t end = std::min<std::int64_t>(frames, at + split.step);
    const Tensor piece = take_piece(latents, channels(), frames, height, width,
                                    {at, end, bands.begin(bands.part()), bands.end(bands.part())});
    Tensor pixels;
    {
      const auto taken = take_turn(device_);
      const bool last = split.turns == 1 && end == frames;
      pixels = stream.push(piece.to(device_), last).to(Device::cpu);
    }
    if (rank > 0) {
      group.send(0, pixels).wait();
      continue;
    }
    for (int from = 0; from < rounds.parts(); ++from) {
      const std::int64_t begin = (rounds.begin() + from) * split.step;
      const std::int64_t behind = std::min<std::int64_t>(frames, begin + split.step);
      const auto shown = static_cast<int>((behind - begin) * time - (begin == 0 ? time - 1 : 0));
      const std::vector<float> planar =
          gather_chunk(group, bands, from * split.bands, shown, height * space_factor(), pixels);
      try {
        if (!failure) sink(planar, shown);
      } catch (const Error&) {
        failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

std::vector<float> CosmosTokenizer::decode(std::span<const float> latents, int frames, int height,
                                           int width) const {
  return collect_frames(latents, frames, height, width);
}

std::vector<std::int32_t> CosmosTokenizer::encode_codes(std::span<const float> pixels, int frames,
                                                        int height, int width) const {
  if (!fsq_) return VideoTokenizer::encode_codes(pixels, frames, height, width);
  return codes_of(encode(pixels, frames, height, width));
}

std::vector<std::int32_t> CosmosTokenizer::codes_of_bytes(const Tensor& rgb) const {
  if (!fsq_) return VideoTokenizer::codes_of_bytes(rgb);
  return codes_of(encode_bytes(rgb));
}

std::vector<std::int32_t> CosmosTokenizer::codes_of(const std::vector<float>& values) const {
  std::vector<std::int32_t> codes(values.size() / fsq_->dimensions());
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = fsq_->code(values.data() + i, codes.size());
  return codes;
}

std::vector<float> CosmosTokenizer::latent_of_codes(std::span<const std::int32_t> codes) const {
  if (!fsq_) return VideoTokenizer::latent_of_codes(codes);
  std::vector<float> values(codes.size() * fsq_->dimensions());
  for (std::size_t i = 0; i < codes.size(); ++i)
    fsq_->values(codes[i], values.data() + i, codes.size());
  return values;
}

}  // namespace vfm::models
