// Gradients, and other tensors like parameters, that ranks have parts of, compared on rank 0 with
// whole ones.
//
// Parts come in pieces, so rank 0 needs no memory for a parameter that is cut.
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

/// Sums over elements of a gradient.
struct GradientSquares {
  double expected = 0, made = 0, difference = 0;
  std::int64_t elements = 0;

  void add(std::span<const float> made_here, std::span<const float> expected_here);
  GradientSquares& operator+=(const GradientSquares& other);
};

class GradientComparer {
 public:
  /// Keeps the references. A collective of the `holders`, which have the parameters together and
  /// rank 0 among them (holders_of() in train/state/state_shards.h), as compare() is. Of a shared
  /// state these are nn::states_of() what is trained.
  GradientComparer(dist::Group& holders, const nn::ParameterList& parameters);

  /// Of parameter `index` what this rank `made`, f32, to what rank 0 gives: f32, whole, on the
  /// host. Elsewhere that is null, and what is returned says nothing.
  GradientSquares compare(std::size_t index, const Tensor& made, const Tensor* expected) const;

 private:
  bool gives(std::size_t index, int rank) const;
  GradientSquares receive(std::size_t index, const Tensor& made, const Tensor& expected) const;

  dist::Group& holders_;
  const std::vector<std::vector<HeldPart>> parts_;  // by parameter and rank; on all ranks
};

/// For each parameter a rank of whose tensor, the gradient or another that `of` gives, the bits are
/// not those of that other rank, of the lowest number, which has the same part; no ranks: there is
/// none. On rank 0. A collective of all ranks.
struct Stray {
  int rank = -1, like = -1;
};
std::vector<Stray> find_strays(const dist::Mesh& mesh, const nn::ParameterList& parameters,
                               const std::function<Tensor(const nn::Parameter&)>& of);
/// The same by what the tensors' bits hash to.
std::vector<Stray> find_strays(const dist::Mesh& mesh, const nn::ParameterList& parameters,
                               std::span<const std::uint64_t> hashes);
std::uint64_t hash_of(const Tensor& values);

}  // namespace vfm::train
