// Copies from the GPU beside what it computes, piece by piece, to a function that runs on a thread
// of its own: for what takes the host longer than a step may wait.
//
// The pieces come through a little pinned memory in turn, so a copy is not ahead of the function by
// more than that. They have a stream of their own: uploads (tensor/upload.h) need not wait for
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace vfm {

/// Thread-safety: for the thread that drives the GPU.
class Download {
 public:
  /// Parts of the GPU's memory that are copied one behind the other.
  struct Part {
    const void* from = nullptr;
    std::size_t bytes = 0;
  };
  using Piece = std::vector<Part>;
  /// Is given each piece, in their order; the bytes are there until it returns.
  using Take = std::function<void(std::size_t piece, const std::byte* bytes)>;

  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;  ///< of a piece
  static constexpr std::size_t kAtOnce = 4;                         ///< pieces in pinned memory

  Download();
  /// What is under way is given up.
  ~Download();
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  /// Begins, after what was queued on the compute stream before, and after what began before. The
  /// sources must stay as they are until release().
  void start(std::vector<Piece> pieces, Take take);
  /// What is queued on the compute stream from now on may overwrite the sources. Waits until all
  /// copies are queued, not until they are done. Throws like finish() if they never will be.
  void release();
  /// Waits until all is taken. Throws what a copy or `take` threw; once.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm
