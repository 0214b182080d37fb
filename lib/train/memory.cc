// SPDX-License-Identifier: Apache-2.0
#include "train/memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "data/packing.h"
#include "models/cosmos/training_cost.h"
#include "tensor/device.h"
#include "tensor/program_memory.h"

namespace vfm::train {

using models::Recompute;

namespace {

/// Of a clip of so many latent pixels; activations of one that is as long as clips get, since
/// clips pass one by one.
models::NetworkCost tokenizer_cost(const Recipe& recipe, double tokens, Recompute recompute) {
  const models::CosmosConfig& config = recipe.model.autoencoder;
  const int side = recipe.data.size, places = side / config.spatial_compression_ratio;
  const double frames = std::max(1.0, tokens / (static_cast<double>(places) * places));
  const auto cost = [&](double latent_frames) {
    const double pixels = 1 + (latent_frames - 1) * config.temporal_compression_ratio;
    return models::cosmos_training_cost(config, static_cast<int>(pixels), side, side,
                                        recipe.compute(), recompute == Recompute::block);
  };
  const models::CosmosTrainingCost one = cost(frames);
  const double longest = 1 + (recipe.data.frames - 1) / config.temporal_compression_ratio;
  models::NetworkCost total;
  total.parameters = one.parameters;
  total.flops_per_token = 3 * (one.encode_flops + one.decode_flops) / std::max(1.0, tokens);
  total.activation_bytes = cost(longest).activation_bytes;
  return total;
}

/// More samples than this say nothing new about packs.
constexpr std::size_t kLookedAt = 65536;

/// A rank's packs of a step, and how many of them go through the network together.
struct Share {
  int packs = 1, together = 1;
};

/// Latents of so many tokens, in numbers.
double latent_values(const Recipe& recipe, double tokens) {
  const auto& p = recipe.model.dit.patch_size;
  return tokens * p[0] * p[1] * p[2] * recipe.model.dit.out_channels;
}

double text_width(const Recipe& recipe) {
  return recipe.model.autoregressive() ? recipe.model.decoder.text_embed_dim
                                       : recipe.model.dit.text_embed_dim;
}

/// Of texts, conditioning, and what goes in and out of the network: little of a large model, and
/// half of a tiny one. The batches of all packs of a step are made before the first one passes, and
/// those of the next step meanwhile.
double beside_tokens(const Recipe& recipe, const Share& share, const PackLoad& load,
                     Recompute recompute) {
  const bool codes = recipe.model.autoregressive();
  const models::NetworkConfig& dit = recipe.model.dit;
  const models::DecoderConfig& decoder = recipe.model.decoder;
  const double size = static_cast<double>(dtype_size(recipe.compute()));
  const double cast = recipe.compute() == DType::bf16 ? size : 0;
  const double layers = codes ? decoder.num_layers : dit.num_layers;
  const double at_once = recompute == Recompute::block ? 1 : layers;
  const double keys = codes ? 1.0 * decoder.key_value_heads() * decoder.attention_head_dim
                            : 1.0 * dit.key_value_heads() * dit.attention_head_dim;
  const double embed = text_width(recipe), packs = share.together;
  // Keys and values of a text, as projected and normed, of each layer; on the way back once more.
  const double texts = load.text_rows * (share.packs * embed * 2 * 4 +
                                         packs * (embed * cast + 4 * keys * size * (at_once + 1)));
  if (codes) return embed > 0 ? texts : 0;
  // Of both steps the noisy latents and what is to come out; what does, its gradient, and patches.
  const double values = latent_values(recipe, static_cast<double>(recipe.data.tokens));
  const double ends = values * (share.packs * 4 * 4 + packs * (2 * 4 + 2 * size + 4));
  // Of each norm shift, scale and gate, before and after the shared ones are added; their
  // gradients.
  const double norms = dit.type == models::NetworkType::stdit ? 5 : 3;
  const double conditioning =
      packs * load.samples * dit.width() * 4 * 3 * (2 * norms * (at_once + 1) + 4);
  return texts + ends + conditioning;
}

/// Pixels of the clips of a pack.
double clips_of_pack(const Recipe& recipe, const PackLoad& load) {
  return 3.0 * recipe.data.frames * recipe.data.size * recipe.data.size * load.samples;
}

/// What the host has of the samples that go into the next batch: as they were read, and, of what is
/// no clip, put one after the other.
double samples_on_their_way(const Recipe& recipe, int packs, const PackLoad& load) {
  if (recipe.model.tokenizer()) return 4 * packs * clips_of_pack(recipe, load);
  const double text = load.text_rows * text_width(recipe);
  if (recipe.model.autoregressive()) return 3 * 4 * packs * text;  // two steps' batches are vectors
  return 2 * 4 * packs * (text + latent_values(recipe, static_cast<double>(recipe.data.tokens)));
}

/// Of this process's control group, which a container has; infinite without one. Version 2, and 1.
double group_limit() {
  double limit = std::numeric_limits<double>::infinity();
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    double bytes = 0;
    if (file >> bytes && bytes > 0) limit = std::min(limit, bytes);  // version 2 may say "max"
  }
  return limit;
}

}  // namespace

models::NetworkCost model_cost(const Recipe& recipe, double tokens, double text_tokens,
                               double pack_tokens, Recompute recompute) {
  if (recipe.model.tokenizer()) return tokenizer_cost(recipe, tokens, recompute);
  if (recipe.model.autoregressive())
    return models::decoder_cost(recipe.model.decoder, tokens, text_tokens, pack_tokens,
                                recipe.compute(), recompute);
  models::NetworkCost cost = models::network_cost(recipe.model.dit, tokens, text_tokens,
                                                  pack_tokens, recipe.compute(), recompute);
  if (recipe.lora.rank > 0) cost.flops_per_token -= cost.weight_flops;
  return cost;
}

std::int64_t trained_parameters(const Recipe& recipe) {
  if (recipe.lora.rank > 0) return models::lora_parameters(recipe.model.dit, recipe.lora);
  return model_cost(recipe, 1, 1, 1, Recompute::none).parameters;
}

PackLoad pack_load(const Recipe& recipe, const Dataset& data) {
  std::vector<std::int64_t> tokens = data.tokens(recipe.model);
  tokens.resize(std::min(tokens.size(), kLookedAt));
  data::PackOptions options;
  options.tokens = recipe.data.tokens;
  options.window = recipe.data.window;
  PackLoad load;
  for (const data::Pack& pack : data::plan_packs(tokens, options)) {
    double rows = 0;
    for (const std::size_t i : pack)
      rows += recipe.text_tokens(data.entry(i).text_tokens);
    load.text_rows = std::max(load.text_rows, rows);
    load.samples = std::max(load.samples, static_cast<double>(pack.size()));
  }
  return load;
}

MemoryNeed memory_need(const Recipe& recipe, int ranks, Recompute recompute, Device device,
                       const PackLoad& load) {
  // A rank's packs of a step go through the network together, or micro_packs at a time.
  Share share{(recipe.data.packs + ranks - 1) / ranks, 0};
  share.together =
      recipe.data.micro_packs > 0 ? std::min(recipe.data.micro_packs, share.packs) : share.packs;
  const double tokens = static_cast<double>(recipe.data.tokens) * share.together;
  const models::NetworkCost cost = model_cost(recipe, 1, 1, tokens, recompute);
  const double parameters = static_cast<double>(trained_parameters(recipe));
  const bool host = recipe.ema.place == "host" && device != Device::cpu;
  MemoryNeed need;
  need.weights = 4 * parameters;
  if (recipe.lora.rank > 0)
    need.weights +=
        static_cast<double>(dtype_size(recipe.compute())) * static_cast<double>(cost.parameters);
  need.gradients = 4 * parameters;
  need.moments = 2 * parameters * static_cast<double>(dtype_size(recipe.optimizer.moment_type()));
  need.average = recipe.ema.mode == "off" || host ? 0 : 4 * parameters;
  need.activations = cost.activation_bytes;
  if (!recipe.model.tokenizer())
    need.activations += beside_tokens(recipe, share, load, recompute);
  else if (device == Device::cpu)  // clips of this step, and of the next one
    need.activations += 2 * 4 * share.packs * clips_of_pack(recipe, load);
  if (device == Device::cpu)
    need.host = program_memory() + samples_on_their_way(recipe, share.together, load);
  // The sizes of a tokenizer's activations come one after the other: so much of what is not in use
  // the allocator keeps (tensor/caching_allocator.h).
  if (device == Device::cpu && recipe.model.tokenizer()) need.host += 0.25 * need.activations;
  return need;
}

void check_memory(const Recipe& recipe, const MemoryNeed& need, double usable) {
  const double lasting = need.total() - need.activations - need.host;
  if (lasting <= usable) return;
  std::string ways = "a smaller model";
  if (recipe.optimizer.moment_type() == DType::f32) ways += ", 'optimizer.moments' bf16";
  if (need.average > 0) ways += ", 'ema.mode' off";
  if (!recipe.model.tokenizer() && !recipe.model.autoregressive() && recipe.lora.rank == 0)
    ways += ", adapters ('lora.rank')";
  fail_usage(
      "weights, gradients and the optimizer's state need about {} of memory on each rank, and {} "
      "are there: choose {}, or a machine with more memory",
      format_bytes(lasting), format_bytes(usable), ways);
}

double usable_memory(Device device, int local_ranks) {
  if (device == Device::cuda) {
    // Of what others leave, as it was before this process put anything there.
    static const GpuMemory memory = gpu_memory();
    return std::min(0.95 * static_cast<double>(memory.total), static_cast<double>(memory.free)) -
           2.0 * (1 << 30);
  }
  const double all =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return 0.8 * std::min(all, group_limit()) / local_ranks;
}

Recompute choose_recompute(const Recipe& recipe, int ranks, Device device, double usable,
                           const PackLoad& load) {
  constexpr Recompute kAll[] = {Recompute::none, Recompute::elementwise, Recompute::block};
  for (const Recompute one : kAll) {
    if (one == Recompute::elementwise && recipe.model.tokenizer()) continue;
    if (recipe.model.recompute == models::recompute_name(one)) return one;
    if (recipe.model.recompute == "auto" &&
        memory_need(recipe, ranks, one, device, load).total() <= usable)
      return one;
  }
  return Recompute::block;
}

void tell_memory(const MemoryNeed& need, Recompute recompute, Device device, double usable) {
  const std::string chosen(models::recompute_name(recompute));
  if (need.total() > usable)
    log_warning(
        "about {} of memory are needed even with 'model.recompute' {}, {} are there: lower "
        "'data.tokens', or choose 'optimizer.moments' bf16",
        format_bytes(need.total()), chosen, format_bytes(usable));
  else if (device == Device::cuda || recompute != Recompute::none)
    log_info("'model.recompute' is {}: about {} of {}", chosen, format_bytes(need.total()),
             format_bytes(usable));
}

}  // namespace vfm::train
