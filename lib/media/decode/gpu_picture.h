// A decoded picture in GPU memory, for code of this process that computes on the same GPU.
// Addresses are valid in the GPU's primary context, which the CUDA runtime uses. The format is
// NV12: 8 bits, 4:2:0, with U and V interleaved.
//
// The decoder has few such pictures, so a caller should keep at most two at a time, and only
// briefly. The decoder writes on CUDA's default stream, and a reader must first wait for this
// stream. Finish all reads before the GpuPicture is destroyed, because the decoder then reuses the
// memory. Thread-safety: any thread may use const members.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "media/frame.h"

namespace vfm::media {

class GpuPicture {
 public:
  virtual ~GpuPicture() = default;
  /// Returns `frame` with a copy of the picture in system memory. Throws Error if copying fails.
  virtual Frame fetch(const Frame& frame) const = 0;

  const std::uint8_t *luma = nullptr, *chroma = nullptr;  ///< Addresses of the first samples.
  std::ptrdiff_t luma_stride = 0, chroma_stride = 0;      ///< Distances between rows in bytes.
};

/// Returns `frame` itself if it has planes, otherwise a copy in system memory.
Frame in_system_memory(const Frame& frame);

}  // namespace vfm::media
