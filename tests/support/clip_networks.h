// Small networks that ranks share, a clip's input for them, and how far outputs are apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/philox.h"
#include "models/dit/architecture.h"
#include "models/dit/dit.h"
#include "nn/parameter.h"
#include "support/noise.h"
#include "support/small_networks.h"

namespace vfm {

inline models::NetworkConfig network_of(const models::Architecture* type) {
  models::NetworkConfig config = type == &models::kStdit ? tiny_stdit() : tiny_dit();
  config.architecture = type;
  config.num_attention_heads = 4;
  return config;
}

/// A guided clip: two samples of one size with texts of two lengths.
inline models::NetworkBatch guided(const models::NetworkConfig& c, std::size_t samples) {
  models::NetworkBatch batch;
  batch.samples = {{3, 4, 6, 12.f, 0.4f, 3}, {3, 4, 6, 12.f, 0.4f, 5}};
  batch.samples.resize(samples);
  batch.latents = noise_tensor({static_cast<std::int64_t>(samples) * c.in_channels * 72}, 1);
  batch.text = noise_tensor({samples == 2 ? 8 : 3, c.text_embed_dim}, 2);
  return batch;
}

/// Of each parameter what this rank holds, of values that depend on its name alone: a part, or a
/// stretch of it.
inline void fill(const models::DiffusionNetwork& network, float scale = 0.1f) {
  for (nn::Parameter* p : nn::states_of(network.parameters())) {
    const nn::Placement& placement = p->placement;
    const Shape& global = placement.global;
    const Shape& shape = placement.part.empty() ? p->shape() : placement.part;
    const Tensor whole = noise_tensor(global, random_key(p->name));
    const Tensor held({p->elements()});
    for (std::int64_t i = 0; i < held.elements(); ++i) {
      std::int64_t at = 0, rest = placement.begin + i;
      std::vector<std::int64_t> index(global.size());
      for (std::size_t d = global.size(); d-- > 0; rest /= shape[d])
        index[d] = rest % shape[d] + placement.offset[d];
      for (std::size_t d = 0; d < global.size(); ++d)
        at = at * global[d] + index[d];
      held.floats()[i] = scale * whole.floats()[at];
    }
    p->write(held.reshape(p->shape()));
  }
}

/// One that FP8 takes, with attention.
inline models::NetworkConfig fp8_network(const models::Architecture* type = &models::kDit) {
  models::NetworkConfig config = type == &models::kStdit ? tiny_stdit() : tiny_dit();
  config.num_attention_heads = 2;
  config.attention_head_dim = 64;
  config.text_embed_dim = 16;
  return config;
}

inline double size_of(const Tensor& x) {
  double sum = 0;
  for (const float v : x.floats())
    sum += double{v} * v;
  return std::sqrt(sum);
}

/// The difference, as a part of `wanted`.
inline double apart_from(const Tensor& wanted, const Tensor& got) {
  REQUIRE(wanted.elements() == got.elements());
  const Tensor difference(wanted.shape());
  for (std::int64_t i = 0; i < wanted.elements(); ++i)
    difference.floats()[i] = got.floats()[i] - wanted.floats()[i];
  REQUIRE(size_of(wanted) > 0.01);
  return size_of(difference) / size_of(wanted);
}

}  // namespace vfm
