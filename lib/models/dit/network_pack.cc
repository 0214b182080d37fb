// SPDX-License-Identifier: Apache-2.0
#include "models/dit/network_pack.h"

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
  times = batch.noise_levels(device);
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
  for (std::size_t r = 0; r < own.size(); ++r)
    of_tokens.insert(of_tokens.end(), static_cast<std::size_t>(own[r]),
                     static_cast<std::int32_t>(r));
  const std::int64_t longest = ops::longest_run(own, config.width(), layout_device(device));
  rows = ops::RowMap(of_tokens, device, longest);
}

}  // namespace vfm::models
