// Copies from the host's pageable memory to the GPU, by way of pinned memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

struct CUstream_st;  // cudaStream_t
struct CUevent_st;   // cudaEvent_t

namespace vfm {

/// Copies through two pinned buffers in turn. A copy from pageable memory would make the host wait
/// for the stream; a copy from pinned memory is queued. The buffers are never freed: the driver
/// takes them back at the end of the process. Thread-safety: one thread at a time.
class Staging {
 public:
  /// Queues a copy on the stream. The source may be changed once the call returns.
  void copy_in(void* to, const void* from, std::size_t bytes, CUstream_st* stream);

 private:
  struct Half {
    void* room = nullptr;
    CUevent_st* done = nullptr;
  };
  static void open(Half& half);

  Half halves_[2];
  int next_ = 0;
};

}  // namespace vfm
