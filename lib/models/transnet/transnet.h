// TransNet V2: how likely each frame of a stretch of video is a change of shot, or the middle of a
// change that takes several frames.
//
// Read from a folder with the weights published for PyTorch, as safetensors or a checkpoint (.pth).
// The network has three stacks of two cells of dilated (2+1)D convolutions, the similarity of
// frames by their features and by their colours, and the head for single frames. The second head
// (all frames of a change) decides nothing, so it is not computed and may be absent.
// Source: Soucek and Lokoc, "TransNet V2: An effective deep network architecture for fast shot
// transition detection" (2020); soCzech/TransNetV2, inference-pytorch/transnetv2_pytorch.py.
// Runs on the CPU, in f32. Thread-safety: const members from any thread. A call uses up to four
// threads; calls that run at the same time share the processors. Each thread computes whole
// branches, so the bits do not depend on the number of threads.
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
  /// Size of a frame as the network sees it: RGB, 8 bits, row-major.
  static constexpr int kWidth = 48, kHeight = 27, kFrameBytes = 3 * kWidth * kHeight;

  /// Throws what read_transnet() throws.
  explicit TransNet(const std::string& folder) : weights_(read_transnet(folder)) {}

  /// The probability, 0 to 1, of each of T frames. The network was trained with T = 100. It looks
  /// at 50 frames on either side, so frames at the ends are judged by fewer. Throws Error if a
  /// result is not a number; Stopped between stacks.
  std::vector<float> probabilities(std::span<const std::uint8_t> frames) const;

  /// {"name": "transnetv2", "hash": "..."}. The hash covers all weights that are used.
  const Json& config() const { return weights_.config; }

 private:
  TransNetWeights weights_;
};

}  // namespace vfm::models
