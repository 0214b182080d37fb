// A decoded picture in the memory of the GPU that decoded it, for code of the same process that
// computes on that GPU. Addresses are valid in the GPU's primary context, which CUDA's runtime also
// uses. Pictures are NV12 (4:2:0, 8 bits, U and V interleaved). This header needs no CUDA.
//
// The engine has few such pictures, so keep at most two, and only briefly. The decoder writes on
// CUDA's default stream: wait for that stream before reading. Finish all reads before this object
// is destroyed: the picture may then be overwritten. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "media/frame.h"

namespace vfm::media {

class CardPicture {
 public:
  virtual ~CardPicture() = default;
  /// Returns the picture in system memory, with the other members of `frame`. Throws Error if the
  /// GPU does not return the picture.
  virtual Frame fetch(const Frame& frame) const = 0;

  const std::uint8_t *luma = nullptr, *chroma = nullptr;  ///< at (0, 0)
  std::ptrdiff_t luma_stride = 0, chroma_stride = 0;      ///< bytes from row to row
};

/// Returns `frame` itself if it has planes, otherwise a copy in system memory.
Frame in_system_memory(const Frame& frame);

}  // namespace vfm::media
