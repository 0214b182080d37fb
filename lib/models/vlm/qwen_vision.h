// The vision tower of Qwen2.5-VL: patches of pictures in, tokens of the language model out.
//
//   x = W patches                              a patch: 3 channels, 2 frames, 14x14 pixels
//   of each block:
//     x += attention(RMS(x))                   within windows of 112x112 pixels, in some blocks
//                                              within frames; heads turned by row and column
//     x += feed-forward(RMS(x))                SwiGLU
//   token = W2 gelu(W1 [RMS(x) of 2x2 patches])
//
// Patches come in the order in which the 2x2 that become a token lie together: frame by frame, row
// of tokens by row, and in each token its rows of patches. Inside, tokens are put window by window.
// Inference, of one video or picture at a time.
// Sources: Bai et al., "Qwen2.5-VL technical report" (2025); transformers'
// Qwen2_5_VisionTransformerPretrainedModel for names and details.
// Shape letters: N patches, D width, M patches of a token.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "models/vlm/qwen_linear.h"
#include "models/vlm/qwen_sizes.h"

namespace vfm::models {

/// How a video lies in patches: pairs of frames, rows and columns.
struct QwenGrid {
  int frames = 1, rows = 0, columns = 0;
  std::int64_t patches() const { return std::int64_t{frames} * rows * columns; }
  std::int64_t tokens(int merge) const { return patches() / merge / merge; }
  bool operator==(const QwenGrid&) const = default;
};

/// In which order tokens go through the blocks, and where windows end.
struct QwenWindows {
  std::vector<std::int32_t> order;    ///< of tokens: which one is at a place
  std::vector<std::int64_t> lengths;  ///< of windows, in patches
};
QwenWindows qwen_windows(const QwenGrid& grid, const QwenVisionConfig& config);

class QwenVision {
 public:
  /// `weights` under the names that QwenConfig::tensors() has (models/vlm/qwen_config.h).
  QwenVision(const QwenVisionConfig& config, const QwenMatrices& weights);

  /// patches [N, 3 * 2 * 14 * 14] f32 of a grid whose rows and columns are multiples of the merge;
  /// on the CPU or the model's device; [N / M, out width] f32. Throws Error for another shape;
  /// Stopped between blocks.
  Tensor forward(const Tensor& patches, const QwenGrid& grid) const;

 private:
  struct Block {
    Tensor norm1, norm2;
    QwenLinear qkv, out;
    QwenFeedForward feed;
    bool full = false;
  };

  QwenVisionConfig config_;
  DType compute_;
  Device device_;
  QwenLinear embed_;
  std::vector<Block> blocks_;
  Tensor merger_norm_;
  QwenLinear merger1_, merger2_;
};

}  // namespace vfm::models
