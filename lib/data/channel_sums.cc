// SPDX-License-Identifier: Apache-2.0
#include "data/channel_sums.h"

#include <cmath>
#include <cstddef>

#include "base/error.h"
#include "base/json.h"

namespace vfm::data {

ChannelSums ChannelSums::of(std::span<const float> latent, int channels) {
  ChannelSums sums;
  const std::size_t n = latent.size() / static_cast<std::size_t>(channels);
  sums.count = static_cast<double>(n);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double v = latent[c * n + i];
      sum += v;
      squares += v * v;
    }
    sums.sum.push_back(sum);
    sums.squares.push_back(squares);
  }
  return sums;
}

void ChannelSums::add(const ChannelSums& other) {
  sum.resize(other.sum.size());
  squares.resize(other.squares.size());
  for (std::size_t c = 0; c < sum.size(); ++c) {
    sum[c] += other.sum[c];
    squares[c] += other.squares[c];
  }
  count += other.count;
}

Json ChannelSums::to_json() const {
  return {{"count", count}, {"sum", sum}, {"squares", squares}};
}

ChannelSums ChannelSums::from_json(const Json& json, int channels) {
  ChannelSums sums;
  sums.count = json.at("count").get<double>();
  sums.sum = json.at("sum").get<std::vector<double>>();
  sums.squares = json.at("squares").get<std::vector<double>>();
  const auto n = static_cast<std::size_t>(channels);
  if (sums.count > 0 && (sums.sum.size() != n || sums.squares.size() != n))
    fail("the sums are of {} channels", sums.sum.size());
  return sums;
}

Json channel_statistics(const ChannelSums& sums) {
  constexpr double kFlat = 1e-10;  // a variance below this is fp16 rounding
  std::vector<double> mean, deviation;
  for (std::size_t c = 0; c < sums.sum.size(); ++c) {
    const double m = sums.sum[c] / sums.count;
    const double variance = sums.squares[c] / sums.count - m * m;
    mean.push_back(m);
    deviation.push_back(variance > kFlat ? std::sqrt(variance) : 1.0);
  }
  return {{"mean", mean}, {"std", deviation}};
}

}  // namespace vfm::data
