// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/smol_vision.h"

#include <algorithm>

#include "base/error.h"
#include "ops/norm/layer_norm.h"
#include "ops/pointwise/add.h"

namespace vfm::models {
namespace {

/// Tiles that go through the layers together.
constexpr std::int64_t kTilesTogether = 8;

const std::string kTower = "vision_model.";

/// Of each patch of a tile of n x n, the number of its place among m x m.
std::vector<std::int32_t> place_numbers(int n, int m) {
  const std::vector<std::int64_t> places = smol_places(n, m);
  std::vector<std::int32_t> numbers;
  for (const std::int64_t row : places)
    for (const std::int64_t column : places)
      numbers.push_back(static_cast<std::int32_t>(row * m + column));
  return numbers;
}

/// The patches of a tile of n x n, token by token of merge x merge.
std::vector<std::int32_t> merged_numbers(int n, int merge) {
  std::vector<std::int32_t> numbers;
  for (int row = 0; row < n; row += merge)
    for (int column = 0; column < n; column += merge)
      for (int inner = row; inner < row + merge; ++inner)
        for (int i = 0; i < merge; ++i)
          numbers.push_back(inner * n + column + i);
  return numbers;
}

}  // namespace

std::vector<std::int64_t> smol_places(int n, int m) {
  std::vector<float> bounds;
  for (int k = 1; k < m; ++k)
    bounds.push_back(static_cast<float>(1.0 / m + (k - 1) * (1.0 / m)));
  const float step = 1.0f / static_cast<float>(n);
  std::vector<std::int64_t> places;
  for (int i = 0; i < n; ++i) {
    const float at = std::min(static_cast<float>(i) * step, static_cast<float>(1.0 - 1e-6));
    places.push_back(std::upper_bound(bounds.begin(), bounds.end(), at) - bounds.begin());
  }
  return places;
}

SmolVision::SmolVision(const SmolConfig& config, const io::TensorSet& set,
                       const QwenWeights& weights)
    : config_(config),
      device_(weights.device()),
      embed_(weights.linear(kTower + "embeddings.patch_embedding")),
      places_(weights.vector(kTower + "embeddings.position_embedding.weight")),
      norm_(weights.vector(kTower + "post_layernorm.weight")),
      norm_bias_(weights.vector(kTower + "post_layernorm.bias")),
      connector_(weights.linear("connector.modality_projection.proj")),
      stack_(config.vision.stack, smol_layer_name, set, weights.compute(), weights.device()) {}

/// The patches of a token beside each other, row by row.
Tensor SmolVision::end(const Tensor& x, int side, const ops::RowChoice& together) const {
  ops::Tape tape(false);
  const Tensor normed = ops::layer_norm(tape, x, norm_, norm_bias_, config_.vision.stack.epsilon);
  const std::int64_t merge = config_.merge, width = x.size(1), across = side / merge;
  return connector_(together.take(normed).reshape({across * across, merge * merge * width}));
}

Tensor SmolVision::forward(const Tensor& patches, int side) const {
  const std::int64_t own = std::int64_t{side} * side;
  if (side < 1 || side % config_.merge != 0 || patches.dims() != 2 ||
      patches.size(1) != std::int64_t{3} * config_.vision.patch * config_.vision.patch ||
      patches.size(0) % own != 0)
    fail("patches {} are not those of tiles of {} x {}", to_string(patches.shape()), side, side);
  // Each patch's place, added to it; and the order in which those of a token are beside each other.
  const Tensor places =
      ops::RowChoice(place_numbers(side, config_.vision.side()), places_.size(0), device_)
          .take(places_);
  const ops::RowChoice together(merged_numbers(side, config_.merge), own, device_);
  const std::int64_t tiles = patches.size(0) / own, tokens = own / config_.merge / config_.merge;
  const Tensor all({tiles * tokens, config_.text.width}, DType::f32, device_);
  for (std::int64_t first = 0; first < tiles; first += kTilesTogether) {
    const std::int64_t count = std::min(kTilesTogether, tiles - first);
    Tensor x({count * own, config_.vision.stack.width}, DType::f32, device_);
    for (std::int64_t i = 0; i < count; ++i) {
      const Tensor tile = patches.rows((first + i) * own, (first + i + 1) * own);
      const Tensor embedded = embed_(tile.to(device_));
      ops::add_in_place(embedded, places);
      copy(embedded, x.rows(i * own, (i + 1) * own));
    }
    x = stack_.forward(x, std::vector<std::int64_t>(static_cast<std::size_t>(count), own), true);
    for (std::int64_t i = 0; i < count; ++i)
      copy(end(x.rows(i * own, (i + 1) * own), side, together),
           all.rows((first + i) * tokens, (first + i + 1) * tokens));
  }
  return all;
}

}  // namespace vfm::models
