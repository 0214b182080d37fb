// The numbers that scripts/golden/cosmos_tokenizer.py draws: from a name and an element's number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "models/cosmos/autoencoder.h"

namespace vfm::models {

inline std::vector<float> drawn(const std::string& name, std::int64_t count, float factor = 1) {
  std::uint32_t seed = 2166136261u;
  for (const unsigned char byte : name)
    seed = (seed ^ byte) * 16777619u;
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t x = static_cast<std::uint32_t>(i) * 0x9E3779B1u + seed;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    x ^= x >> 16;
    const double unit = (double{static_cast<double>(x)} / 2147483648.0 - 1) * std::sqrt(3.0);
    out.push_back(static_cast<float>(unit) * factor);
  }
  return out;
}

/// Weights of about unit gain.
inline void fill(const CosmosAutoencoder& model) {
  for (nn::Parameter* p : model.parameters()) {
    const std::int64_t fan_in = p->elements() / p->shape()[0];
    const bool norm = p->name.ends_with("norm.weight");
    std::vector<float> values =
        p->shape().size() > 1
            ? drawn(p->name, p->elements(),
                    static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in))))
            : drawn(p->name, p->elements(), 0.2f);
    if (norm)
      for (float& v : values)
        v += 1;
    p->write(Tensor::from(values, p->shape()));
  }
}

/// (3, T, H, W) to [T, H, W, 3], and back: any number of channels.
inline Tensor channels_last(const std::vector<float>& planar, std::int64_t t, std::int64_t h,
                            std::int64_t w) {
  const auto places = static_cast<std::size_t>(t * h * w), channels = planar.size() / places;
  const Tensor out({t, h, w, static_cast<std::int64_t>(channels)});
  for (std::size_t i = 0; i < places; ++i)
    for (std::size_t c = 0; c < channels; ++c)
      out.floats()[i * channels + c] = planar[c * places + i];
  return out;
}
inline std::vector<float> planar(const Tensor& x) {
  const auto channels = static_cast<std::size_t>(x.size(3)), places = x.floats().size() / channels;
  std::vector<float> out(x.floats().size());
  for (std::size_t i = 0; i < places; ++i)
    for (std::size_t c = 0; c < channels; ++c)
      out[c * places + i] = x.floats()[i * channels + c];
  return out;
}

}  // namespace vfm::models
