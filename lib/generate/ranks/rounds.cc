// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/rounds.h"

#include <utility>

#include "dist/bytes.h"
#include "dist/together.h"

namespace vfm::generate {

std::uint64_t clip_cost(const NamedRequest& request, const Extents& latent, bool autoregressive) {
  const auto tokens = static_cast<std::uint64_t>(latent.frames) *
                      static_cast<std::uint64_t>(latent.height) *
                      static_cast<std::uint64_t>(latent.width);
  if (autoregressive) return tokens;
  const auto steps = static_cast<std::uint64_t>(request.sampling.steps);
  return tokens * steps * (request.sampling.guides() ? 2 : 1);
}

Round::Round(dist::Group& leaders, std::vector<Asked> asked,
             const std::vector<std::uint64_t>& costs, bool more,
             std::optional<double>& output_error)
    : leaders_(leaders), asked_(std::move(asked)), more_(more) {
  if (leaders.rank() == 0) {
    const std::vector<int> dealt = dist::deal(costs, leaders.size());
    for (std::size_t i = 0; i < asked_.size(); ++i)
      makers_.push_back(asked_[i].error.empty() ? dealt[i] : -1);
  }
  unpack(dist::broadcast_bytes(leaders, pack(makers_, more_, output_error), 0), makers_, more_,
         output_error);
  for (std::size_t i = 0; i < makers_.size(); ++i) {
    const int maker = makers_[i];
    if (leaders.rank() == 0 && maker > 0) dist::send_bytes(leaders, maker, pack(asked_[i]));
    if (maker != leaders.rank()) continue;
    if (leaders.rank() == 0)
      mine_.push_back(asked_[i]);
    else
      unpack(dist::receive_bytes(leaders, 0), mine_.emplace_back());
  }
}

std::vector<Result> Round::collect(std::vector<Result> made) {
  std::vector<Result> all;
  std::size_t next = 0;
  for (std::size_t i = 0; i < makers_.size(); ++i) {
    const int maker = makers_[i], rank = leaders_.rank();
    if (rank > 0 && maker == rank) dist::send_bytes(leaders_, 0, pack(made[next++]));
    if (rank > 0) continue;
    Result& result = all.emplace_back();
    if (maker == 0) {
      result = std::move(made[next++]);
      continue;
    }
    result.asked = std::move(asked_[i]);
    if (maker > 0) unpack(dist::receive_bytes(leaders_, maker), result);
  }
  return all;
}

}  // namespace vfm::generate
