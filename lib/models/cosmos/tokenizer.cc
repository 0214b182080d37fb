// Shape letters: T H W pixels, t h w latent, C latent channels.
// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "dist/bytes.h"
#include "models/folder/load_tensors.h"
#include "models/folder/model_folder.h"
#include "tensor/device.h"

namespace vfm::models {
namespace {

/// The cost that is found on Device::meta is within this of what the allocator hands out.
constexpr double kCostError = 1.03;

ModelFolder open_model(const std::string& folder) {
  return ModelFolder(folder, {.part = "vae", .types = {kCosmosContinuous, kCosmosDiscrete}});
}

DType compute_of(const TokenizerConfig& config, Device device) {
  const std::string& name = config.compute;
  if (name != "" && name != "f32" && name != "bf16")
    fail_usage("'compute' is '{}': there are f32 and bf16", name);
  const bool low = name.empty() ? device == Device::cuda : name == "bf16";
  return low ? DType::bf16 : DType::f32;
}

std::string existing_folder(const TokenizerConfig& config) {
  std::string folder = config.path;
  if (folder.empty()) fail("the tokenizer has no 'path'");
  if (!std::filesystem::exists(folder))
    fail_usage("the tokenizer is not in '{}' any more; give its folder with --tokenizer DIR",
               folder);
  return folder;
}

// latent_statistics(), and with `says` a word where they are not the folder's own.
std::optional<LatentScale> statistics_of(const HfComponent& component, bool says) {
  std::optional<LatentScale> statistics =
      latent_statistics(component.config(), "'" + component.folder() + "'");
  if (says && statistics &&
      !read_config(component.folder(), "config.json").contains("latents_mean"))
    log_warning(
        "'{}/config.json' leaves out latents_mean and latents_std: those of NVIDIA's Cosmos-1.0 "
        "CV8x8x8 are taken, as diffusers does. If these weights are others, write null for both "
        "there, and they are measured",
        component.folder());
  return statistics;
}

// The folder of a tokenizer's configuration, before its weights are read.
struct Opened {
  Opened(const TokenizerConfig& config, Device device)
      : folder(existing_folder(config)),
        compute(compute_of(config, device)),
        model(open_model(folder)) {
    const HfComponent& component = model.component();
    const std::string& type = config.name;
    component.need_type({type});
    const std::string what = "'" + component.folder() + "/config.json'";
    network = cosmos_config_from_json(component.config(), what);
    if (network.discrete() != (type == kCosmosDiscrete))
      fail_usage("{}: a {} with {} levels", what, type, network.levels.size());
  }
  // Its hash, which must be that of `config` if that has one.
  std::string hash(const TokenizerConfig& config) const {
    std::string own = model.hash();
    if (!config.hash.empty() && config.hash != own)
      fail_usage(
          "'{}' holds another tokenizer (hash {}) than the latents were made with ({}); give the "
          "folder of that one with --tokenizer DIR",
          folder, own, config.hash);
    return own;
  }
  std::string folder;
  DType compute;
  ModelFolder model;
  CosmosConfig network;
};

// Frames [begin, end) of planar values (C, T, H, W) as [end - begin, H, W, C].
Tensor take_frames(std::span<const float> planar, std::int64_t channels, std::int64_t frames,
                   std::int64_t begin, std::int64_t end, std::int64_t height, std::int64_t width) {
  const Tensor out({end - begin, height, width, channels});
  const std::int64_t plane = height * width, count = (end - begin) * plane;
  float* const to = out.data<float>();
#pragma omp parallel for schedule(static) if (count > 16384)
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t c = 0; c < channels; ++c)
      to[i * channels + c] = planar[static_cast<std::size_t>((c * frames + begin) * plane + i)];
  return out;
}

// The other way: frames [t, H, W, C] to their place in planar values.
void put_frames(const Tensor& from, std::span<float> planar, std::int64_t frames,
                std::int64_t begin) {
  const std::int64_t channels = from.size(3), plane = from.size(1) * from.size(2);
  const std::int64_t count = from.size(0) * plane;
  const float* const at = from.data<float>();
#pragma omp parallel for schedule(static) if (count > 16384)
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t c = 0; c < channels; ++c)
      planar[static_cast<std::size_t>((c * frames + begin) * plane + i)] = at[i * channels + c];
}

void check_size(std::size_t have, std::int64_t channels, int frames, int height, int width) {
  if (frames < 1 || height < 1 || width < 1 ||
      have != static_cast<std::size_t>(channels) * frames * height * width)
    fail("{} values are not {} x {} x {} x {}", have, channels, frames, height, width);
}

}  // namespace

bool is_cosmos_tokenizer(std::string_view name) {
  return name == kCosmosContinuous || name == kCosmosDiscrete;
}

TokenizerConfig cosmos_tokenizer_in(const std::string& folder) {
  const ModelFolder model = open_model(folder);
  return {.name = model.type(), .path = model.absolute_path()};
}

std::int64_t cosmos_step(const CosmosConfig& config, CosmosWork work, std::int64_t frames,
                         std::int64_t height, std::int64_t width, const CosmosRoom& room,
                         Device device, DType compute) {
  const std::int64_t time = config.temporal_compression_ratio;
  const std::int64_t space = config.spatial_compression_ratio;
  const std::int64_t each = std::max<std::int64_t>(1, height * width * space * space * time);
  const std::int64_t usual = std::clamp<std::int64_t>(room.pixels / each, 1, frames);
  if (room.memory <= 0) return usual;
  double least = std::numeric_limits<double>::infinity();
  // The last try is all at once.
  for (std::int64_t i = usual; i >= 0; --i) {
    const std::int64_t step = i > 0 ? i : frames;
    const double bytes =
        kCostError *
        cosmos_cost(config, work, frames, height, width, step, device, compute).activation_bytes;
    if (bytes <= room.memory) return step;
    least = std::min(least, bytes);
  }
  fail_usage("to {} {} frames of {}x{} the tokenizer needs {} at least: --tokenizer-memory is {}",
             work == CosmosWork::encode ? "encode" : "decode", 1 + (frames - 1) * time,
             width * space, height * space, format_bytes(least), format_bytes(room.memory));
}

CosmosFolder inspect_cosmos(const TokenizerConfig& config, Device device) {
  return as_usage([&] {
    const Opened opened(config, device);
    const CosmosAutoencoder model(opened.network, 0, DType::bf16, Device::cpu, false);
    const io::TensorSet& weights = opened.model.tensors();
    check_tensors(weights, model.parameters());
    if (!config.hash.empty()) opened.hash(config);
    return CosmosFolder{opened.network, opened.compute, static_cast<double>(weights.bytes())};
  });
}

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

std::string CosmosTokenizer::name() const {
  return fsq_ ? kCosmosDiscrete : kCosmosContinuous;
}

// On the CPU f32 goes without saying.
TokenizerConfig CosmosTokenizer::config() const {
  const char* const full = device_ == Device::cpu ? "" : "f32";
  return {.name = name(),
          .path = folder_,
          .hash = hash_,
          .compute = compute_ == DType::bf16 ? "bf16" : full};
}

std::int64_t CosmosTokenizer::step(CosmosWork work, int frames, int height, int width) const {
  return cosmos_step(model_->config(), work, frames, height, width, room_, device_, compute_);
}

void CosmosTokenizer::check_memory(bool encodes, int frames, int height, int width) const {
  if (room_.memory > 0)
    step(encodes ? CosmosWork::encode : CosmosWork::decode, frames, height, width);
}

std::vector<float> CosmosTokenizer::encode(std::span<const float> pixels, int frames, int height,
                                           int width) const {
  check_size(pixels.size(), 3, frames, height, width);
  const int time = time_factor(), space = space_factor(), total = 1 + (frames - 1) / time;
  const std::int64_t step = this->step(CosmosWork::encode, total, height / space, width / space);
  std::vector<float> latents(static_cast<std::size_t>(channels()) * total * (height / space) *
                             (width / space));
  const auto turn = take_turn(device_);
  auto stream = model_->encode_stream();
  for (std::int64_t at = 0; at < total; at += step) {
    check_stop();
    const std::int64_t end = std::min<std::int64_t>(total, at + step);
    const std::int64_t from = at == 0 ? 0 : 1 + (at - 1) * time;
    const std::int64_t to = end == total ? frames : 1 + (end - 1) * time;
    const Tensor chunk = take_frames(pixels, 3, frames, from, to, height, width);
    put_frames(stream.push(chunk.to(device_), end == total).to(Device::cpu), latents, total, at);
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
  const std::int64_t step = this->step(CosmosWork::decode, frames, height, width);
  auto stream = model_->decode_stream();
  for (std::int64_t at = 0; at < frames; at += step) {
    check_stop();
    const std::int64_t end = std::min<std::int64_t>(frames, at + step);
    const Tensor chunk = take_frames(latents, channels(), frames, at, end, height, width);
    Tensor pixels;
    {
      const auto turn = take_turn(device_);
      pixels = stream.push(chunk.to(device_), end == frames).to(Device::cpu);
    }
    std::vector<float> planar(pixels.floats().size());
    put_frames(pixels, planar, pixels.size(0), 0);
    sink(planar, static_cast<int>(pixels.size(0)));
  }
}

void CosmosTokenizer::decode_together(dist::Group& group, std::span<const float> latents,
                                      int frames, int height, int width,
                                      const FrameSink& sink) const {
  check_size(latents.size(), channels(), frames, height, width);
  const std::int64_t alone = this->step(CosmosWork::decode, frames, height, width);
  // All at once may be what memory suffices for, where chunks with what is kept of them are not.
  if (group.size() == 1 || (room_.memory > 0 && alone == frames)) {
    if (group.rank() == 0) decode_stream(latents, frames, height, width, sink);
    return;
  }
  const std::int64_t step =
      std::min<std::int64_t>(alone, (frames + group.size() - 1) / group.size());
  TimeExchange exchange(group, (frames + step - 1) / step);
  auto stream = model_->decode_stream(exchange);
  const int rank = group.rank(), time = time_factor();
  std::exception_ptr failure;  // of the sink: the others know nothing of it
  while (exchange.next_round()) {
    check_stop();
    if (!exchange.takes_part()) break;
    const std::int64_t at = (exchange.begin() + rank) * step;
    const std::int64_t end = std::min<std::int64_t>(frames, at + step);
    const Tensor chunk = take_frames(latents, channels(), frames, at, end, height, width);
    Tensor pixels;
    {
      const auto turn = take_turn(device_);
      pixels = stream.push(chunk.to(device_)).to(Device::cpu);
    }
    if (rank > 0) {
      group.send(0, pixels).wait();
      continue;
    }
    for (int from = 0; from < exchange.parts(); ++from) {
      if (from > 0) {
        const std::int64_t begin = (exchange.begin() + from) * step;
        Shape shape = pixels.shape();
        shape[0] = (std::min<std::int64_t>(frames, begin + step) - begin) * time;
        pixels = Tensor(shape);
        group.receive(from, pixels).wait();
      }
      std::vector<float> planar(pixels.floats().size());
      put_frames(pixels, planar, pixels.size(0), 0);
      try {
        if (!failure) sink(planar, static_cast<int>(pixels.size(0)));
      } catch (const Error&) {
        failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

std::vector<float> CosmosTokenizer::decode(std::span<const float> latents, int frames, int height,
                                           int width) const {
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

std::vector<std::int32_t> CosmosTokenizer::encode_codes(std::span<const float> pixels, int frames,
                                                        int height, int width) const {
  if (!fsq_) return VideoTokenizer::encode_codes(pixels, frames, height, width);
  const std::vector<float> values = encode(pixels, frames, height, width);
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
