// TransNet V2: how likely each frame of a stretch of video is a change of shot, or the middle of
// one that takes several frames.
//
// From a folder with the weights as they are published for PyTorch, safetensors or a checkpoint
// (.pth): three stacks of two cells of dilated (2+1)D convolutions, likeness of frames by their
// features and by their colours, and the head of single frames. The second head (all frames of a
// change), by which nothing is decided, is not computed and may be absent.
// Source: Soucek and Lokoc, "TransNet V2: An effective deep network architecture for fast shot
// transition detection" (2020); soCzech/TransNetV2, inference-pytorch/transnetv2_pytorch.py.
// On the CPU, in f32. Thread-safety: const members from any thread. A call takes up to four
// threads, as many as calls under way leave it of the processors; each computes a whole branch, so
// the bits do not depend on how many.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "models/transnet/transnet_weights.h"

namespace vfm::models {

class TransNet {
 public:
  /// What it sees of a frame: RGB, 8 bits, row-major.
  static constexpr int kWidth = 48, kHeight = 27, kFrameBytes = 3 * kWidth * kHeight;

  /// Throws what read_transnet() does.
  explicit TransNet(const std::string& folder) : weights_(read_transnet(folder)) {}

  /// Of each of T frames the probability, 0 to 1; T is 100 where the network was trained. It looks
  /// at 50 frames to either side, so those at the ends are judged by less. Throws Error where the
  /// results are no numbers; Stopped between stacks.
  std::vector<float> probabilities(std::span<const std::uint8_t> frames) const;

  /// {"name": "transnetv2", "hash": "..."}: the hash is of all weights that are used.
  const Json& config() const { return weights_.config; }

 private:
  TransNetWeights weights_;
};

}  // namespace vfm::models
