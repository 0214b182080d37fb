// Passes a batch through a rank's chunks of a network that goes forward in parts
// (nn/staged_forward.h). Thread-safety: one thread, that of the network.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "nn/network_layout.h"
#include "nn/staged_forward.h"
#include "ops/tape.h"
#include "train/step/objective.h"

namespace vfm::train {

/// Access to one network and batch, which must outlive this object.
struct StagedBatch {
  std::function<std::unique_ptr<nn::StagedForward>(ops::Tape&)> stages;
  /// Takes the network's output and returns the gradient of the loss by it; called on the last
  /// stage. Without recording the result is not used.
  std::function<Tensor(const Tensor& output)> loss;
  /// Shapes of the tensors that go into a block (nn::Streams).
  std::function<std::vector<Shape>(std::size_t block)> streams;
  Device device = Device::cpu;
  int blocks = 0;  ///< blocks of the whole network
};

class NetworkChunks final : public ChunkedPass {
 public:
  /// Without `record` backward is not possible. The layout's groups must outlive this object.
  /// `final` is called for each gradient when it is complete for this batch; the first chunk must
  /// go backward last.
  NetworkChunks(const nn::NetworkLayout& layout, StagedBatch batch, bool record = true,
                ops::Tape::Listener final = {});

  nn::Streams blank(int chunk, Side side) const override;
  nn::Streams forward(int chunk, nn::Streams streams) override;
  void expect_backward(int chunk) override;
  nn::Streams backward(int chunk, nn::Streams gradients) override;

  /// Runs all chunks forward without recording, each as soon as the chunk before it is done, on
  /// whichever rank that is. A collective of the pipeline.
  void forward_alone();

 private:
  struct Chunk {
    nn::BlockRange blocks;
    bool first = false, last = false;  ///< first, last of the network
    std::optional<ops::Tape> tape;
    nn::Streams out;        ///< outputs, or their names
    nn::Streams seeds;      ///< for the last chunk: gradients of `out`
    nn::Streams gradients;  ///< gradients of the chunk's inputs
  };

  const nn::NetworkLayout layout_;
  const StagedBatch batch_;
  const bool record_;
  const ops::Tape::Listener final_;
  std::set<const std::byte*> told_;  // gradients for which final_ was called
  std::deque<Chunk> chunks_;         // a deque, as chunks must not move
};

}  // namespace vfm::train
