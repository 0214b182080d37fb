// Copies data from the GPU while it computes, piece by piece, and passes the pieces to a function
// on a thread of its own. For work on the host that takes longer than a step may wait.
//
// The pieces pass in turn through a small pinned buffer, so the copy is at most that buffer ahead
// of the function. The copies have a stream of their own, so uploads (tensor/upload.h) do not wait
// for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace vfm {

/// Thread-safety: only the thread that drives the GPU.
class Download {
 public:
  /// A range of the GPU's memory. The parts of a piece are copied one behind the other.
  struct Part {
    const void* from = nullptr;
    std::size_t bytes = 0;
  };
  using Piece = std::vector<Part>;
  /// Called with each piece, in order. `bytes` is valid until the call returns.
  using Take = std::function<void(std::size_t piece, const std::byte* bytes)>;

  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;  ///< of one piece
  static constexpr std::size_t kAtOnce = 4;                         ///< pieces in pinned memory

  Download();
  /// Abandons the copies that are under way.
  ~Download();
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  /// Begins to copy after all that is queued on the compute stream and after earlier calls of
  /// start(). The sources must not change until release().
  void start(std::vector<Piece> pieces, Take take);
  /// Lets work that is queued on the compute stream from now on overwrite the sources. Waits until
  /// all copies are queued, not until they are done. Throws like finish() if they cannot be queued.
  void release();
  /// Waits until `take` has been given every piece. Throws once what a copy or `take` threw.
  void finish();
  /// Whether finish() would not wait.
  bool done() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm
