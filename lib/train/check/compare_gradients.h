// Compares gradients, or other tensors of the parameters' shapes, with whole ones on rank 0. Each
// rank has parts of them. Parts are sent in pieces, so rank 0 needs no memory for another whole
// parameter.
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dist/mesh.h"
#include "nn/parameter.h"
#include "train/checkpoint/checkpoint_pieces.h"

namespace vfm::train {

/// Sums of squares over the elements of a gradient.
struct GradientSquares {
  double expected = 0, made = 0, difference = 0;
  std::int64_t elements = 0;

  void add(std::span<const float> made_here, std::span<const float> expected_here);
  GradientSquares& operator+=(const GradientSquares& other);
};

class GradientComparer {
 public:
  /// Keeps the references. A collective of `holders`, as is compare(): these ranks have the
  /// parameters together, and rank 0 is one of them (holders_of() in train/state/state_shards.h).
  /// For a shared state `parameters` are nn::states_of() the trained ones.
  GradientComparer(dist::Group& holders, const nn::ParameterList& parameters);

  /// Compares this rank's `made`, f32, for parameter `index` with `expected` on rank 0: f32, whole,
  /// on the host. On other ranks `expected` is null, and the result has no meaning.
  GradientSquares compare(std::size_t index, const Tensor& made, const Tensor* expected) const;

 private:
  bool gives(std::size_t index, int rank) const;
  GradientSquares receive(std::size_t index, const Tensor& made, const Tensor& expected) const;

  dist::Group& holders_;
  const std::vector<std::vector<HeldPart>> parts_;  // by parameter and rank; on all ranks
};

/// For each parameter: a rank whose tensor (the gradient, or another that `of` returns) differs in
/// bits from that of `like`, the lowest rank with the same part. Without such a rank both are -1.
/// The result is on rank 0. A collective of all ranks.
struct Stray {
  int rank = -1, like = -1;
};
std::vector<Stray> find_strays(const dist::Mesh& mesh, const nn::ParameterList& parameters,
                               const std::function<Tensor(const nn::Parameter&)>& of);
/// The same by hashes of the tensors' bits.
std::vector<Stray> find_strays(const dist::Mesh& mesh, const nn::ParameterList& parameters,
                               std::span<const std::uint64_t> hashes);
std::uint64_t hash_of(const Tensor& values);

}  // namespace vfm::train
