// SPDX-License-Identifier: Apache-2.0
#include "data/interleaving.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "base/error.h"

namespace vfm::data {
namespace {

using Wide = unsigned __int128;

constexpr std::uint64_t kMostShares = std::uint64_t{1} << 62;
constexpr int kMostDecimals = 9;

/// round(m * part / whole), and what the division leaves.
std::pair<std::uint64_t, std::uint64_t> part_of(std::uint64_t m, std::uint64_t part,
                                                std::uint64_t whole) {
  const Wide twice = Wide{m} * part + whole / 2;
  return {static_cast<std::uint64_t>(twice / whole), static_cast<std::uint64_t>(twice % whole)};
}

/// Ten to that power makes all of them whole.
int decimals_of(std::span<const double> values, const char* what) {
  for (int decimals = 0; decimals <= kMostDecimals; ++decimals) {
    const double power = std::pow(10.0, decimals);
    bool whole = true;
    for (const double value : values) {
      const double times = value * power;
      whole = whole && times < 1e15 && std::round(times) >= 1 &&
              std::abs(times - std::round(times)) <= 1e-12 * times;
    }
    if (whole) return decimals;
  }
  fail_usage("'{}' is [{}], must be numbers above 0 with at most {} decimals and 15 digits in all",
             what, fmt::join(values, ", "), kMostDecimals);
}

}  // namespace

Interleaving::Interleaving(std::span<const std::uint64_t> shares) : sources_(shares.size()) {
  using Weighed = std::pair<std::uint64_t, std::size_t>;  // of equals the first
  std::priority_queue<Weighed, std::vector<Weighed>, std::greater<>> open;
  for (std::size_t i = 0; i < sources_; ++i) {
    nodes_.push_back({shares[i], i, i});
    open.emplace(shares[i], i);
  }
  while (open.size() > 1) {
    const auto [light_share, light] = open.top();
    open.pop();
    const auto [heavy_share, heavy] = open.top();
    open.pop();
    open.emplace(light_share + heavy_share, nodes_.size());
    nodes_.push_back({light_share + heavy_share, light, heavy});
  }
}

/// Of the first n things how many come to each node.
std::vector<std::uint64_t> Interleaving::through(std::uint64_t n) const {
  std::vector<std::uint64_t> counts(nodes_.size());
  counts.back() = n;
  for (std::size_t i = nodes_.size(); i-- > sources_;) {
    const Node& node = nodes_[i];
    counts[node.light] = part_of(counts[i], nodes_[node.light].share, node.share).first;
    counts[node.heavy] = counts[i] - counts[node.light];
  }
  return counts;
}

std::vector<std::uint64_t> Interleaving::counts(std::uint64_t n) const {
  std::vector<std::uint64_t> counts = through(n);
  counts.resize(sources_);
  return counts;
}

Interleaving::Walk::Walk(const Interleaving& of, std::uint64_t n)
    : of_(of), rests_(of.nodes_.size()) {
  const std::vector<std::uint64_t> counts = of.through(n);
  for (std::size_t i = of.sources_; i < of.nodes_.size(); ++i) {
    const Node& node = of.nodes_[i];
    rests_[i] = part_of(counts[i], of.nodes_[node.light].share, node.share).second;
  }
}

std::size_t Interleaving::Walk::next() {
  std::size_t at = of_.nodes_.size() - 1;
  while (at >= of_.sources_) {
    const Node& node = of_.nodes_[at];
    std::uint64_t& rest = rests_[at];
    rest += of_.nodes_[node.light].share;
    const bool light = rest >= node.share;
    if (light) rest -= node.share;
    at = light ? node.light : node.heavy;
  }
  return at;
}

std::vector<std::uint64_t> whole_shares(std::span<const double> values,
                                        std::span<const std::uint64_t> times, const char* what) {
  const double power = std::pow(10.0, decimals_of(values, what));
  std::vector<Wide> shares;
  Wide divisor = 0, sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    shares.push_back(Wide(static_cast<std::uint64_t>(std::llround(values[i] * power))) * times[i]);
    for (Wide a = shares.back(); a != 0;)
      a = std::exchange(divisor, a) % a;
  }
  std::vector<std::uint64_t> whole;
  for (const Wide share : shares) {
    sum += share / divisor;
    if (sum > kMostShares)
      fail_usage("'{}' is [{}]: these are too far apart, give them fewer digits", what,
                 fmt::join(values, ", "));
    whole.push_back(static_cast<std::uint64_t>(share / divisor));
  }
  return whole;
}

}  // namespace vfm::data
