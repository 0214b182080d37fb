// SPDX-License-Identifier: Apache-2.0
#include "media/container/splice_plan.h"

#include <algorithm>
#include <optional>

namespace vfm::media {
namespace {

std::optional<std::size_t> rank_of(std::int64_t time, std::span<const std::int64_t> sorted) {
  const auto found = std::lower_bound(sorted.begin(), sorted.end(), time);
  if (found == sorted.end() || *found != time) return std::nullopt;
  return static_cast<std::size_t>(found - sorted.begin());
}

}  // namespace

SplicePlan plan_splice(std::span<const std::int64_t> packets, std::span<const std::int64_t> frames,
                       std::int64_t end) {
  SplicePlan plan;
  if (packets.empty() || frames.empty() || packets[0] != frames[0]) return plan;
  std::vector<std::size_t>& taken = plan.packets;
  std::vector<bool> shown(frames.size());
  std::size_t last = 0;  // Largest rank of a taken packet.
  for (std::size_t i = 0; i < packets.size() && packets[i] < end; ++i) {
    if (packets[i] < packets[0]) continue;
    const std::optional<std::size_t> rank = rank_of(packets[i], frames);
    if (!rank || shown[*rank]) break;
    shown[*rank] = true;
    last = std::max(last, *rank);
    taken.push_back(i);
    if (last + 1 == taken.size()) plan.frames = taken.size();
  }
  taken.resize(plan.frames);
  return plan;
}

std::vector<std::int64_t> decoding_times(std::span<const std::int64_t> times) {
  std::vector<std::int64_t> sorted(times.begin(), times.end());
  std::sort(sorted.begin(), sorted.end());
  // The largest number of places by which a packet is later in decoding order than in `sorted`.
  std::size_t delay = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::size_t rank = rank_of(times[i], sorted).value_or(i);
    if (i > rank) delay = std::max(delay, i - rank);
  }
  const std::int64_t gap = sorted.size() > 1 ? sorted[1] - sorted[0] : 1;
  std::vector<std::int64_t> decoded(times.size());
  for (std::size_t i = 0; i < times.size(); ++i)
    decoded[i] =
        i >= delay ? sorted[i - delay] : sorted[0] - gap * static_cast<std::int64_t>(delay - i);
  return decoded;
}

}  // namespace vfm::media
