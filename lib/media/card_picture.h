// A decoded picture that has stayed on the GPU that decoded it: plain addresses in its memory, for
// whoever computes there in the same process (the GPU's primary context, which CUDA's runtime uses,
// too). 4:2:0 of 8 bits, V behind each U (NV12). Nothing here needs CUDA.
//
// The engine decodes into few such pictures, so keep no more than two, and not for long. What
// decoded it may still write: it did so on the stream that CUDA takes where none is named; wait for
// that one. It may be written again as soon as this object is gone: wait for what reads it before.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "media/frame.h"

namespace vfm::media {

class CardPicture {
 public:
  virtual ~CardPicture() = default;
  /// The same picture in the system's memory, with the facts of `frame`. Throws Error where the GPU
  /// does not give it.
  virtual Frame fetch(const Frame& frame) const = 0;

  const std::uint8_t *luma = nullptr, *chroma = nullptr;  ///< (0, 0); chroma is U, V by turns
  std::ptrdiff_t luma_stride = 0, chroma_stride = 0;      ///< bytes from row to row
};

/// `frame` with planes in the system's memory: itself, if it has them.
Frame in_system_memory(const Frame& frame);

}  // namespace vfm::media
