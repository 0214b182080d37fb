// A decoded picture in the memory of the GPU that decoded it: plain addresses, for code that
// computes there in the same process (in the GPU's primary context, which CUDA's runtime also
// uses). Pictures are 4:2:0 of 8 bits, V behind each U (NV12). Nothing here needs CUDA.
//
// The engine decodes into few such pictures, so keep no more than two, and not for long. The
// decoder may still write it, on CUDA's default stream: wait for that. It may be overwritten when
// this object is gone: first wait for all reads. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "media/frame.h"

namespace vfm::media {

class CardPicture {
 public:
  virtual ~CardPicture() = default;
  /// The same picture in the system's memory, with the facts of `frame`. Throws Error if the GPU
  /// does not return it.
  virtual Frame fetch(const Frame& frame) const = 0;

  const std::uint8_t *luma = nullptr, *chroma = nullptr;  ///< (0, 0); chroma is U, V by turns
  std::ptrdiff_t luma_stride = 0, chroma_stride = 0;      ///< bytes from row to row
};

/// `frame` with planes in the system's memory: itself, if it has them.
Frame in_system_memory(const Frame& frame);

}  // namespace vfm::media
