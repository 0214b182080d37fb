// What a frame shows, as one word, for tests to compare.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/hash.h"
#include "media/frame.h"

/// XXH3-128, in hex, of layout, size, range and the visible samples; strides and padding do not
/// count.
inline std::string frame_hash(const vfm::media::Frame& frame) {
  using namespace vfm::media;
  vfm::Hasher hasher;
  const std::int32_t facts[4] = {static_cast<std::int32_t>(frame.layout), frame.width, frame.height,
                                 frame.full_range};
  hasher.update(facts, sizeof facts);
  for (int p = 0; p < plane_count(frame.layout); ++p) {
    const auto bytes = static_cast<std::size_t>(plane_row_bytes(frame, p));
    for (int y = 0; y < plane_rows(frame, p); ++y)
      hasher.update(frame.plane[p] + static_cast<std::ptrdiff_t>(y) * frame.stride[p], bytes);
  }
  return hasher.hex128();
}
