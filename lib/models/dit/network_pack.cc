// SPDX-License-Identifier: Apache-2.0
#include "models/dit/network_pack.h"

#include <algorithm>
#include <cstdint>

#include "tensor/meta.h"

namespace vfm::models {

nn::FrameWork frame_work(const NetworkConfig& config, bool queries_stay) {
  return {5 * std::int64_t{config.width()} + config.hidden(), 2 * std::int64_t{config.width()},
          queries_stay};
}

nn::FramePlan plan_frames(const NetworkConfig& config, const std::vector<ops::TokenGrid>& grids,
                          const nn::NetworkLayout& layout) {
  return {grids, layout.cp_size(), frame_work(config, !layout.deals_heads()), layout.tp_size()};
}

std::vector<ops::RowRange> own_rows(const NetworkConfig& config,
                                    const std::vector<ops::TokenGrid>& grids,
                                    const nn::NetworkLayout& layout) {
  if (layout.hybrid)
    return nn::TokenShard(plan_frames(config, grids, layout), layout, Device::cpu).own;
  std::vector<std::int64_t> lengths;
  for (const ops::TokenGrid& g : grids)
    lengths.push_back(std::int64_t{g.frames} * g.height * g.width);
  return nn::TokenShard(lengths, layout, Device::cpu).own;
}

namespace {

// With a 0 for the clean frames of all samples, if there are any.
Tensor times_of(const NetworkBatch& batch, Device device) {
  const Tensor levels = batch.noise_levels(device);
  if (std::ranges::all_of(batch.samples, [](const auto& s) { return s.clean_frames == 0; }))
    return levels;
  const std::int64_t samples = levels.elements();
  const Tensor all = Tensor::zeros({samples + 1}, DType::f32, device);
  copy(levels.reshape({samples}), all.rows(0, samples));
  return all;
}

}  // namespace

NetworkPack::NetworkPack(const NetworkConfig& config, const NetworkBatch& batch, Device device,
                         const nn::NetworkLayout& layout) {
  const auto& p = config.patch_size;
  std::vector<float> of_samples;
  for (const NetworkSample& s : batch.samples) {
    patches.push_back({s.frames, s.height, s.width});
    grids.push_back({s.frames / p[0], s.height / p[1], s.width / p[2], s.fps, s.position_step});
    of_samples.push_back(s.fps);
    self.query_lengths.push_back(s.tokens(config));
    cross.key_lengths.push_back(s.text_tokens);
  }
  times = times_of(batch, device);
  round_embedding = batch.round_embedding;
  rates = Tensor::from(of_samples, {static_cast<std::int64_t>(of_samples.size())}).to(device);
  self.key_lengths = self.query_lengths;
  const std::vector<std::int64_t> lengths = self.key_lengths;
  for (const std::int64_t n : lengths)
    tokens += n;
  std::vector<std::int64_t> own = lengths;
  if (!layout.alone()) {
    if (layout.hybrid) {
      frames = plan_frames(config, grids, layout);
      shard.emplace(*frames, layout, device);
    } else {
      shard.emplace(lengths, layout, device);
    }
    for (std::size_t r = 0; r < lengths.size(); ++r) {
      self.query_lengths[r] = shard->sequence[r].count();
      own[r] = shard->own[r].count();
    }
  }
  cross.query_lengths = self.query_lengths;
  if (layout.deals_heads()) self.query_lengths = lengths;
  for (ops::AttentionPack* pack : {&self, &cross}) {
    const int ranks = pack == &self ? layout.heads_ranks() : layout.tp_size();
    pack->heads = config.num_attention_heads / ranks;
    pack->key_heads = config.key_value_heads() / ranks;
    pack->head_dim = config.attention_head_dim;
    ops::prepare(*pack, device);
  }
  std::vector<std::int32_t> of_tokens;
  std::int64_t begin = 0;  // of the sample, in the pack
  for (std::size_t r = 0; r < own.size(); ++r) {
    const std::int64_t first = shard ? shard->own[r].begin - begin : 0,
                       clean = std::int64_t{batch.samples[r].clean_frames / p[0]} *
                               grids[r].height * grids[r].width,
                       cleared = std::clamp(clean - first, std::int64_t{0}, own[r]);
    of_tokens.insert(of_tokens.end(), static_cast<std::size_t>(cleared),
                     static_cast<std::int32_t>(own.size()));
    of_tokens.insert(of_tokens.end(), static_cast<std::size_t>(own[r] - cleared),
                     static_cast<std::int32_t>(r));
    begin += lengths[r];
  }
  const std::int64_t longest = ops::longest_run(own, config.width(), layout_device(device));
  rows = ops::RowMap(of_tokens, device, longest);
}

}  // namespace vfm::models
