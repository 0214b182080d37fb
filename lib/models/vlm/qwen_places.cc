// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen_places.h"

#include <algorithm>

#include "base/error.h"

namespace vfm::models {
namespace {

/// Times from here on are refused: single precision does not tell all of them apart.
constexpr float kQwenLastTime = 1 << 24;

/// Appends those of a picture, from the number `first` on. Throws Error for a video that takes too
/// long, as a container may say that it does.
void add_places(const QwenSight& sight, std::int32_t first, const QwenVisionConfig& c,
                std::vector<QwenPlace>& places) {
  // As transformers: in single precision.
  const float interval =
      sight.still ? 1.0f
                  : static_cast<float>(c.tokens_per_second) * static_cast<float>(sight.seconds);
  if (!(interval * static_cast<float>(sight.grid.frames) < kQwenLastTime))
    fail("{} pairs of frames that are {} seconds apart are a longer video than the model can count",
         sight.grid.frames, sight.seconds);
  for (int frame = 0; frame < sight.grid.frames; ++frame) {
    const auto time = static_cast<std::int32_t>(static_cast<float>(frame) * interval);
    for (int row = 0; row < sight.grid.rows / c.merge; ++row)
      for (int column = 0; column < sight.grid.columns / c.merge; ++column)
        places.push_back({first + time, first + row, first + column});
  }
}

}  // namespace

std::vector<QwenPlace> qwen_places(std::span<const std::int32_t> ids,
                                   std::span<const QwenSight> sights, const QwenConfig& config) {
  std::vector<QwenPlace> places;
  std::int32_t next = 0;
  std::size_t sight = 0;
  for (std::size_t i = 0; i < ids.size();) {
    if (ids[i] != config.image_token && ids[i] != config.video_token) {
      places.push_back({next, next, next});
      ++next, ++i;
      continue;
    }
    if (sight == sights.size()) fail("a prompt has tokens of more pictures than there are");
    const QwenSight& seen = sights[sight++];
    const auto count = static_cast<std::size_t>(seen.grid.tokens(config.vision.merge));
    const std::int32_t token = seen.still ? config.image_token : config.video_token;
    const std::size_t end = std::min(ids.size(), i + count);
    if (end - i != count || std::any_of(ids.begin() + static_cast<std::ptrdiff_t>(i),
                                        ids.begin() + static_cast<std::ptrdiff_t>(end),
                                        [&](std::int32_t id) { return id != token; }))
      fail("a prompt does not have the {} tokens of what is seen", count);
    add_places(seen, next, config.vision, places);
    for (; i < end; ++i)
      next = std::max(next, *std::ranges::max_element(places[i]) + 1);
  }
  if (sight != sights.size()) fail("a prompt has no place for what is seen");
  return places;
}

}  // namespace vfm::models
