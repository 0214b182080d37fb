// A batch on its way through a rank's chunks of a network that goes forward in parts
// (models/dit/staged_forward.h).
// Thread-safety: one thread, that of the network.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "models/dit/network_layout.h"
#include "models/dit/staged_forward.h"
#include "ops/tape.h"
#include "train/step/objective.h"

namespace vfm::train {

/// What is of one network and batch, which must outlive it.
struct StagedBatch {
  std::function<std::unique_ptr<models::StagedForward>(ops::Tape&)> stages;
  /// Takes the network's output and gives the gradient of the loss by it; of the last stage. What
  /// it gives does not matter where nothing is recorded.
  std::function<Tensor(const Tensor& output)> loss;
  Shape stream;  ///< of the residual stream
  Device device = Device::cpu;
  int blocks = 0;  ///< of the whole network
};

class NetworkChunks final : public ChunkedPass {
 public:
  /// Without recording there is no backward. Groups of the layout must outlive it. `final` is told
  /// of gradients that get nothing more of this batch, if the first chunk goes back last.
  NetworkChunks(const models::NetworkLayout& layout, StagedBatch batch, bool record = true,
                ops::Tape::Listener final = {});

  Tensor blank_stream() const override;
  Tensor forward(int chunk, Tensor stream) override;
  void expect_backward(int chunk) override;
  Tensor backward(int chunk, const Tensor& gradient) override;

  /// All chunks, each as soon as the one before is done, on whichever rank; without recording. A
  /// collective of the pipeline.
  void forward_alone();

 private:
  struct Chunk {
    models::BlockRange blocks;
    bool first = false, last = false;  ///< of the network
    std::optional<ops::Tape> tape;
    Tensor out;       ///< or its name
    Tensor seed;      ///< of the last one: the gradient of `out`
    Tensor gradient;  ///< of what goes in
  };

  const models::NetworkLayout layout_;
  const StagedBatch batch_;
  const bool record_;
  const ops::Tape::Listener final_;
  std::set<const std::byte*> told_;  // of these gradients
  std::deque<Chunk> chunks_;         // does not move them
};

}  // namespace vfm::train
