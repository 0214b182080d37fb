// Shape letters: T H W pixels, t h w latent, C latent channels, P side of a patch.
// SPDX-License-Identifier: Apache-2.0
#include "models/wan_vae/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "base/error.h"
#include "base/stop.h"
#include "dist/bytes.h"
#include "models/folder/load_tensors.h"
#include "models/tokenizer_family.h"
#include "models/tokenizer_folder.h"
#include "models/wan_vae/config_json.h"
#include "models/wan_vae/cost.h"
#include "models/wan_vae/names.h"
#include "tensor/device.h"

namespace vfm::models {
namespace {

struct OpenedWan : TokenizerFolder {
  OpenedWan(const TokenizerConfig& config, Device device)
      : TokenizerFolder(config, device),
        what("'" + model.config_path() + "'"),
        network(wan_vae_config_from_json(model.config(), what)) {}
  std::string what;
  WanVaeConfig network;
};

// The channels of a frame [H / P, W / P, 3 P P] are (colour, column, row) of a patch. Calls
// take(value, x) for each pixel of a line.
template <class Take>
void each_pixel(const Tensor& frame, int patch, std::int64_t y, std::int64_t colour,
                const Take& take) {
  const std::int64_t channels = frame.size(2), columns = frame.size(1);
  float* const row = frame.data<float>() + y / patch * columns * channels;
  float* const first = row + colour * patch * patch + y % patch;
  for (std::int64_t x = 0; x < columns * patch; ++x)
    take(first[x / patch * channels + x % patch * patch], x);
}

// Calls work(y, colour, room for a line) for all lines, on all threads.
template <class Work>
void over_lines(std::int64_t height, std::int64_t width, const Work& work) {
#pragma omp parallel for schedule(static) if (height * width > 4096)
  for (std::int64_t y = 0; y < height; ++y) {
    std::vector<float> room(static_cast<std::size_t>(width));
    for (std::int64_t colour = 0; colour < 3; ++colour)
      work(y, colour, room.data());
  }
}

// The frame whose lines line(y, colour, to) writes.
template <class Line>
Tensor patches_of(std::int64_t height, std::int64_t width, int patch, const Line& line) {
  const Tensor frame({height / patch, width / patch, std::int64_t{3} * patch * patch});
  over_lines(height, width, [&](std::int64_t y, std::int64_t colour, float* room) {
    line(y, colour, room);
    each_pixel(frame, patch, y, colour, [&](float& value, std::int64_t x) { value = room[x]; });
  });
  return frame;
}

// Calls line(y, colour, values) for the lines of a frame, on all threads.
template <class Line>
void each_line(const Tensor& frame, int patch, const Line& line) {
  over_lines(frame.size(0) * patch, frame.size(1) * patch,
             [&](std::int64_t y, std::int64_t colour, float* room) {
               each_pixel(frame, patch, y, colour,
                          [&](const float& value, std::int64_t x) { room[x] = value; });
               line(y, colour, room);
             });
}

// Frame t of planar latents (C, T, h, w) as [h, w, C]; and the other way.
Tensor latent_frame(std::span<const float> planar, std::int64_t frames, std::int64_t t,
                    const Shape& shape) {
  const Tensor frame(shape);
  const std::int64_t places = shape[0] * shape[1], channels = shape[2];
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t i = 0; i < places; ++i)
      frame.data<float>()[i * channels + c] =
          planar[static_cast<std::size_t>((c * frames + t) * places + i)];
  return frame;
}

void put_latent_frame(const Tensor& frame, std::span<float> planar, std::int64_t frames,
                      std::int64_t t) {
  const std::int64_t places = frame.size(0) * frame.size(1), channels = frame.size(2);
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t i = 0; i < places; ++i)
      planar[static_cast<std::size_t>((c * frames + t) * places + i)] =
          frame.data<float>()[i * channels + c];
}

// Frames (3, T, H, W) that are put together.
struct Pixels {
  Pixels(int count, std::int64_t rows, std::int64_t columns)
      : frames(count),
        height(rows),
        width(columns),
        planar(static_cast<std::size_t>(3 * count * rows * columns)) {}
  // Clamped, from row `first` on.
  void put(const Tensor& frame, int patch, std::int64_t t, std::int64_t first) {
    each_line(frame, patch, [&](std::int64_t y, std::int64_t c, float* from) {
      float* const to = planar.data() + ((c * frames + t) * height + first + y) * width;
      std::transform(from, from + width, to, [](float v) { return std::clamp(v, -1.f, 1.f); });
    });
  }
  int frames;
  std::int64_t height, width;
  std::vector<float> planar;
};

void need_size(std::size_t have, std::int64_t channels, int frames, int height, int width) {
  if (frames < 1 || height < 1 || width < 1 ||
      have != static_cast<std::size_t>(channels) * frames * height * width)
    fail("{} values are not {} x {} x {} x {}", have, channels, frames, height, width);
}

TokenizerFacts inspect_wan(const TokenizerConfig& config, Device device) {
  const OpenedWan opened(config, device);
  const WanVaeConfig& network = opened.network;
  const WanAutoencoder model(network, DType::bf16, Device::cpu);
  const io::TensorSet& weights = opened.model.tensors();
  check_tensors(weights, model.parameters());
  if (!config.hash.empty()) opened.hash(config);
  TokenizerFacts facts;
  facts.channels = network.z_dim;
  facts.time_factor = network.time_factor();
  facts.space_factor = network.space_factor();
  facts.file_bytes = static_cast<double>(weights.bytes());
  facts.loading_bytes = static_cast<double>(loading_bytes(weights));
  facts.cost = [network, device, compute = opened.compute](const TokenizerWork& work) {
    const int bands = work.encodes ? 1 : wan_vae_bands(work.height, work.ranks);
    const WanVaeWork part{work.encodes, work.frames, work.height, work.width, bands};
    const std::int64_t pixels =
        wan_vae_band(network, part, static_cast<double>(work.memory), device, compute);
    const WanVaeWork whole{work.encodes, work.frames, work.height, work.width};
    TokenizerCost all{wan_vae_cost(network, whole, pixels, device, compute),
                      CosmosSplit{.bands = bands}};
    if (bands == 1) return all;
    const PartCost own = wan_vae_cost(network, part, pixels, device, compute);
    all.cost.activation_bytes = own.activation_bytes;
    all.cost.held_bytes = own.held_bytes;
    all.cost.host_bytes = own.host_bytes;
    return all;
  };
  return facts;
}

TokenizerConfig settle_wan(const TokenizerConfig& config) {
  TokenizerConfig settled = config;
  settled.hash = OpenedWan(config, Device::cpu).hash(config);
  return settled;
}

std::unique_ptr<VideoTokenizer> make_wan(const TokenizerConfig& config, Device device,
                                         std::uint64_t memory, const LoadingRanks& ranks) {
  return std::make_unique<WanVaeTokenizer>(config, device, memory, ranks);
}

LatentFacts latents_wan(const Json& config, std::string_view what) {
  const WanVaeConfig network = wan_vae_config_from_json(config, what);
  LatentScale plain{std::vector<double>(static_cast<std::size_t>(network.z_dim), 0.0),
                    std::vector<double>(static_cast<std::size_t>(network.z_dim), 1.0)};
  return {wan_vae_statistics(config, what).value_or(std::move(plain)), network.time_factor(),
          network.space_factor()};
}

}  // namespace

constinit const TokenizerFamily kWanVaeFamily = {.name = kWanVaeClass,
                                                 .keys = {"path", "hash", "compute"},
                                                 .network = true,
                                                 .in_diffusers = true,
                                                 .inspect = inspect_wan,
                                                 .settle = settle_wan,
                                                 .make = make_wan,
                                                 .latents = latents_wan};

WanVaeTokenizer::WanVaeTokenizer(const TokenizerConfig& config, Device device, std::uint64_t memory,
                                 const LoadingRanks& ranks)
    : device_(device), memory_(static_cast<double>(memory)) {
  std::optional<OpenedWan> opened;
  ranks.agree([&] {
    opened.emplace(config, device);
    folder_ = opened->folder;
    compute_ = opened->compute;
    statistics_ = wan_vae_statistics(opened->model.config(), opened->what);
    opened->model.verify(ranks.rank(), ranks.size());
    if (ranks.rank() == 0) hash_ = opened->hash(config);
    model_.emplace(opened->network, compute_, device_);
    check_tensors(opened->model.weights(), model_->parameters());
  });
  if (ranks.group) hash_ = dist::broadcast_bytes(*ranks.group, hash_, 0);
  if (ranks.group)
    load_parameters(opened->model.weights(), model_->parameters(), *ranks.group);
  else
    load_parameters(opened->model.weights(), model_->parameters());
}

// On the CPU f32 goes without saying.
TokenizerConfig WanVaeTokenizer::config() const {
  const char* const full = device_ == Device::cpu ? "" : "f32";
  return {.name = std::string(kWanVaeClass),
          .path = folder_,
          .hash = hash_,
          .compute = compute_ == DType::bf16 ? "bf16" : full};
}

std::int64_t WanVaeTokenizer::band(bool encodes, int frames, int height, int width,
                                   int ranks) const {
  const int bands = encodes ? 1 : wan_vae_bands(height, ranks);
  return wan_vae_band(model_->config(), {encodes, frames, height, width, bands}, memory_, device_,
                      compute_);
}

void WanVaeTokenizer::check_memory(bool encodes, int frames, int height, int width,
                                   int ranks) const {
  if (memory_ > 0) band(encodes, frames, height, width, ranks);
}

std::vector<float> WanVaeTokenizer::encode(std::span<const float> pixels, int frames, int height,
                                           int width) const {
  need_size(pixels.size(), 3, frames, height, width);
  const int patch = model_->config().patch_size;
  const auto frame = [&](std::int64_t t) {
    return patches_of(height, width, patch, [&](std::int64_t y, std::int64_t c, float* to) {
      const auto at = static_cast<std::size_t>(((c * frames + t) * height + y) * width);
      std::ranges::copy(pixels.subspan(at, static_cast<std::size_t>(width)), to);
    });
  };
  return encode_frames(frame, frames, height, width);
}

std::vector<float> WanVaeTokenizer::encode_bytes(const Tensor& rgb) const {
  if (rgb.dims() != 4 || rgb.dtype() != DType::u8 || rgb.size(3) != 3)
    fail("pictures of {} {}", dtype_name(rgb.dtype()), to_string(rgb.shape()));
  const std::int64_t height = rgb.size(1), width = rgb.size(2);
  const auto frame = [&](std::int64_t t) {
    const Tensor bytes = rgb.rows(t, t + 1).to(Device::cpu);
    const int patch = model_->config().patch_size;
    return patches_of(height, width, patch, [&](std::int64_t y, std::int64_t c, float* to) {
      const std::uint8_t* const from = bytes.data<std::uint8_t>() + y * width * 3 + c;
      for (std::int64_t x = 0; x < width; ++x)
        to[x] = static_cast<float>(from[3 * x]) / 127.5f - 1;
    });
  };
  return encode_frames(frame, static_cast<int>(rgb.size(0)), static_cast<int>(height),
                       static_cast<int>(width));
}

std::vector<float> WanVaeTokenizer::encode_frames(const FrameOf& frame, int frames, int height,
                                                  int width) const {
  const int time = time_factor(), space = space_factor();
  if ((frames - 1) % time != 0 || height % space != 0 || width % space != 0)
    fail(
        "cannot encode {} frames of {}x{}: frames must be 1 and multiples of {}, rows and columns "
        "multiples of {}",
        frames, width, height, time, space);
  const int total = 1 + (frames - 1) / time, rows = height / space, columns = width / space;
  const std::int64_t pixels = band(true, total, rows, columns);
  std::vector<float> latents(static_cast<std::size_t>(channels()) * total * rows * columns);
  const auto turn = take_turn(device_);
  auto stream = model_->encoder(pixels);
  std::int64_t made = 0;
  for (std::int64_t t = 0; t < frames; ++t) {
    check_stop();
    const Tensor latent = stream.push(frame(t).to(device_), t + 1 == frames);
    if (latent.defined()) put_latent_frame(latent.to(Device::cpu), latents, total, made++);
  }
  if (!std::ranges::all_of(latents, [](float value) { return std::isfinite(value); }))
    fail("the tokenizer '{}' makes values that are not finite: its weights are damaged", folder_);
  return latents;
}

void WanVaeTokenizer::decode_stream(std::span<const float> latents, int frames, int height,
                                    int width, const FrameSink& sink) const {
  need_size(latents.size(), channels(), frames, height, width);
  const int patch = model_->config().patch_size, space = space_factor();
  auto stream = model_->decoder(band(false, frames, height, width));
  for (int t = 0; t < frames; ++t) {
    check_stop();
    const std::vector<Tensor> made = shown(
        stream, latent_frame(latents, frames, t, {height, width, channels()}), t + 1 == frames);
    Pixels pixels(static_cast<int>(made.size()), height * space, width * space);
    for (std::size_t i = 0; i < made.size(); ++i)
      pixels.put(made[i], patch, static_cast<std::int64_t>(i), 0);
    sink(pixels.planar, pixels.frames);
  }
}

void WanVaeTokenizer::decode_together(dist::Group& group, std::span<const float> latents,
                                      int frames, int height, int width,
                                      const FrameSink& sink) const {
  need_size(latents.size(), channels(), frames, height, width);
  const int parts = wan_vae_bands(height, group.size()), rank = group.rank();
  if (parts == 1 && rank == 0) return decode_stream(latents, frames, height, width, sink);
  if (rank >= parts) return;
  const int patch = model_->config().patch_size, space = space_factor();
  const SpatialExchange bands(RankLine(group, 0, 1, parts), height);
  auto stream = model_->decoder(band(false, frames, height, width, parts), &bands);
  std::exception_ptr failure;  // of the sink: the others know nothing of it
  for (int t = 0; t < frames; ++t) {
    check_stop();
    const Tensor latent = latent_frame(latents, frames, t, {height, width, channels()});
    const std::vector<Tensor> made =
        shown(stream, latent.rows(bands.begin(rank), bands.end(rank)), t + 1 == frames);
    if (rank > 0) {
      for (const Tensor& frame : made)
        group.send(0, frame).wait();
      continue;
    }
    Pixels pixels(static_cast<int>(made.size()), height * space, width * space);
    for (int part = 0; part < parts; ++part)
      for (std::size_t i = 0; i < made.size(); ++i) {
        Tensor frame = made[i];
        if (part > 0) {
          const std::int64_t rows = (bands.end(part) - bands.begin(part)) * (space / patch);
          frame = Tensor({rows, frame.size(1), frame.size(2)});
          group.receive(part, frame).wait();
        }
        pixels.put(frame, patch, static_cast<std::int64_t>(i), bands.begin(part) * space);
      }
    try {
      if (!failure) sink(pixels.planar, pixels.frames);
    } catch (const Error&) {
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

// The frames of a latent frame, on the CPU.
std::vector<Tensor> WanVaeTokenizer::shown(WanAutoencoder::Decoder& stream, const Tensor& latent,
                                           bool last) const {
  const auto turn = take_turn(device_);
  std::vector<Tensor> frames;
  stream.push(latent.to(device_), last,
              [&](const Tensor& frame) { frames.push_back(frame.to(Device::cpu)); });
  return frames;
}

std::vector<float> WanVaeTokenizer::decode(std::span<const float> latents, int frames, int height,
                                           int width) const {
  return collect_frames(latents, frames, height, width);
}

}  // namespace vfm::models
