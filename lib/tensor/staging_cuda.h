// Copies from the host's pageable memory to the GPU, by way of pinned memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

struct CUstream_st;  // cudaStream_t
struct CUevent_st;   // cudaEvent_t

namespace vfm {

/// A copy from pageable memory would wait for the stream; one from pinned memory is queued. So what
/// is to be copied goes through two pinned halves in turn. Never freed: the driver takes it back.
/// Thread-safety: one thread at a time.
class Staging {
 public:
  /// Queues a copy on the stream; the source may be changed at return.
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
