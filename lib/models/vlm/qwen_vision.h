// The vision tower of Qwen2.5-VL: patches of pictures in, tokens of the language model out.
//
//   x = W patches                              a patch: 3 channels, 2 frames, 14x14 pixels
//   for each block:
//     x += attention(RMS(x))                   within windows of 112x112 pixels, in some blocks
//                                              within frames; heads rotated by row and column
//     x += feed-forward(RMS(x))                SwiGLU
//   token = W2 gelu(W1 [RMS(x) of 2x2 patches])
//
// The 2x2 patches of a token lie together: the order is frame by frame, row of tokens by row of
// tokens, and within a token row by row. Inside the tower tokens are reordered window by window.
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

/// The grid of a video's patches: pairs of frames, rows and columns.
struct QwenGrid {
  int frames = 1, rows = 0, columns = 0;
  std::int64_t patches() const { return std::int64_t{frames} * rows * columns; }
  std::int64_t tokens(int merge) const { return patches() / merge / merge; }
  bool operator==(const QwenGrid&) const = default;
};

/// The order in which tokens go through the blocks, and the lengths of windows.
struct QwenWindows {
  std::vector<std::int32_t> order;    ///< number of the token at each place
  std::vector<std::int64_t> lengths;  ///< lengths of the windows, in patches
};
QwenWindows qwen_windows(const QwenGrid& grid, const QwenVisionConfig& config);

class QwenVision {
 public:
  /// `weights` has the names of QwenConfig::tensors() (models/vlm/qwen_config.h).
  QwenVision(const QwenVisionConfig& config, const QwenMatrices& weights);

  /// patches [N, 3 * 2 * 14 * 14] f32, on the CPU or the model's device, of a grid whose rows and
  /// columns are multiples of `merge`. Returns [N / M, out width] f32. Throws Error for another
  /// shape; Stopped between blocks.
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
