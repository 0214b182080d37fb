// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen_vision.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/stop.h"
#include "ops/attention/attention.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"
#include "ops/pointwise/row_order.h"
#include "ops/position/turn_heads.h"

namespace vfm::models {
namespace {

constexpr float kQwenVisionEpsilon = 1e-6f;
constexpr double kQwenVisionTheta = 10000;

/// Of patches in the order of `order`: half of a head's pairs are turned by the row, half by the
/// column.
struct PatchAngles {
  Tensor cosines, sines;
};

PatchAngles patch_angles(const QwenGrid& grid, const QwenVisionConfig& c,
                         const std::vector<std::int32_t>& order, Device device) {
  const std::int64_t head = c.width / c.heads, axis = head / 4, merge = c.merge;
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < axis; ++i)
    frequencies.push_back(
        static_cast<float>(1 / std::pow(kQwenVisionTheta, static_cast<double>(2 * i) /
                                                              static_cast<double>(2 * axis))));
  const Device made = device == Device::meta ? device : Device::cpu;
  PatchAngles angles{Tensor({grid.patches(), 2 * axis}, DType::f32, made),
                     Tensor({grid.patches(), 2 * axis}, DType::f32, made)};
  if (device == Device::meta) return angles;
  float* cosine = angles.cosines.data<float>();
  float* sine = angles.sines.data<float>();
  const std::int64_t across = grid.columns / merge, of_frame = across * (grid.rows / merge);
  for (const std::int32_t token : order)
    for (std::int64_t patch = 0; patch < merge * merge; ++patch) {
      const std::int64_t place = token % of_frame;
      const std::int64_t row = place / across * merge + patch / merge;
      const std::int64_t column = place % across * merge + patch % merge;
      for (const std::int64_t at : {row, column})
        for (const float frequency : frequencies) {
          const float angle = static_cast<float>(at) * frequency;
          *cosine++ = std::cos(angle);
          *sine++ = std::sin(angle);
        }
    }
  return {angles.cosines.to(device), angles.sines.to(device)};
}

}  // namespace

QwenWindows qwen_windows(const QwenGrid& grid, const QwenVisionConfig& config) {
  const int side = config.window / config.merge / config.patch;
  const int rows = grid.rows / config.merge, columns = grid.columns / config.merge;
  QwenWindows windows;
  for (int frame = 0; frame < grid.frames; ++frame)
    for (int top = 0; top < rows; top += side)
      for (int left = 0; left < columns; left += side) {
        const int bottom = std::min(rows, top + side), right = std::min(columns, left + side);
        for (int row = top; row < bottom; ++row)
          for (int column = left; column < right; ++column)
            windows.order.push_back((frame * rows + row) * columns + column);
        windows.lengths.push_back(std::int64_t{bottom - top} * (right - left) * config.merged());
      }
  return windows;
}

QwenVision::QwenVision(const QwenVisionConfig& config, const QwenMatrices& weights)
    : config_(config),
      compute_(weights.compute()),
      device_(weights.device()),
      embed_(weights.linear("visual.patch_embed.proj")),
      merger_norm_(weights.vector("visual.merger.ln_q.weight")),
      merger1_(weights.linear("visual.merger.mlp.0")),
      merger2_(weights.linear("visual.merger.mlp.2")) {
  for (int i = 0; i < config_.depth; ++i) {
    const std::string name = vfm::format("visual.blocks.{}.", i);
    blocks_.push_back({weights.vector(name + "norm1.weight"), weights.vector(name + "norm2.weight"),
                       weights.linear(name + "attn.qkv"), weights.linear(name + "attn.proj"),
                       QwenFeedForward::from(weights, name + "mlp."),
                       std::ranges::find(config_.full_blocks, i) != config_.full_blocks.end()});
  }
}

Tensor QwenVision::forward(const Tensor& patches, const QwenGrid& grid) const {
  if (grid.frames < 1 || grid.rows < 1 || grid.columns < 1 || grid.rows % config_.merge != 0 ||
      grid.columns % config_.merge != 0 ||
      patches.shape() != Shape{grid.patches(), config_.patch_elements()})
    fail("patches {} are not those of {} x {} x {}", to_string(patches.shape()), grid.frames,
         grid.rows, grid.columns);
  const QwenWindows windows = qwen_windows(grid, config_);
  const PatchAngles angles = patch_angles(grid, config_, windows.order, device_);
  ops::AttentionPack within;
  within.heads = within.key_heads = config_.heads;
  within.head_dim = config_.width / config_.heads;
  ops::AttentionPack across = within;
  within.query_lengths = within.key_lengths = windows.lengths;
  across.query_lengths.assign(static_cast<std::size_t>(grid.frames),
                              std::int64_t{grid.rows} * grid.columns);
  across.key_lengths = across.query_lengths;
  ops::prepare(within, device_);
  ops::prepare(across, device_);

  ops::Tape tape(false);
  const ops::RowOrder order(windows.order, device_);
  // A token's patches are one row there.
  const std::int64_t tokens = grid.tokens(config_.merge), width = config_.width;
  const Shape of_tokens{tokens, width * config_.merged()};
  const Tensor x = ops::reorder_rows(tape, embed_(patches.to(device_)).reshape(of_tokens), order)
                       .reshape({grid.patches(), width});
  for (const Block& block : blocks_) {
    check_stop();
    const Tensor qkv = block.qkv(qwen_norm(x, block.norm1, kQwenVisionEpsilon));
    ops::turn_heads(qkv, 2 * config_.heads, angles.cosines, angles.sines);
    const Tensor seen = ops::self_attention(tape, qkv.to(compute_), block.full ? across : within);
    ops::add_in_place(x, block.out(seen.to(DType::f32)));
    ops::add_in_place(x, block.feed(qwen_norm(x, block.norm2, kQwenVisionEpsilon)));
  }
  const Tensor normed = qwen_norm(x, merger_norm_, kQwenVisionEpsilon);
  const Tensor inner = merger1_(normed.reshape(of_tokens));
  ops::activate_in_place(tape, inner, ops::ActivationKind::gelu);
  return ops::restore_rows(tape, merger2_(inner), order);
}

}  // namespace vfm::models
