// Parameters whose update depends on more than one element, where ranks have parts of them: each
// rank learns once what the others have. Matrices are made whole, or ranks agree on numbers.
//
// A whole matrix is gathered to one rank, which computes with it and sends each rank its part of
// the result. The matrices of a round each have another owner, so all ranks compute, and a rank
// sends what it has of a matrix once and gets it back once. The bits of a result do not depend on
// the layout. A matrix that every rank has whole is computed by each of them, without messages.
// Source: the distribution is that of Liu et al., "Muon is scalable for LLM training" (2025), but
// here one rank computes a matrix, not all of them.
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dist/mesh.h"
#include "nn/parameter.h"
#include "train/checkpoint/checkpoint_pieces.h"

namespace vfm::train {

class StateParts {
 public:
  /// `parameters` are some of nn::states_of() a model's, the same on all ranks. Without a mesh
  /// this rank has all of them whole. Keeps the pointers. A collective of the ranks that have them
  /// together. On Device::meta each other rank is taken to have an equal share.
  StateParts(const dist::Mesh* mesh, const nn::ParameterList& parameters);

  /// Returns this rank's part of matrix i for Act, flat. All are of one type.
  using Part = std::function<Tensor(std::size_t i)>;
  /// Returns a matrix of the same shape and type for the whole matrix i.
  using Act = std::function<Tensor(std::size_t i, const Tensor& whole)>;
  /// Takes this rank's part of the result, flat.
  using Take = std::function<void(std::size_t i, const Tensor& part)>;
  /// A collective of the same ranks.
  void each_whole(const Part& part, const Act& act, const Take& take) const;

  /// A tensor for parameter `number`, f32, of one size on all ranks.
  struct Numbered {
    std::size_t number = 0;
    Tensor values;
  };
  /// Sets each element to the largest that a rank has in its place, for tensors of parameters that
  /// ranks have in parts. All are at least 0. All ranks give them in one order. A collective of the
  /// same ranks.
  void greatest(std::span<const Numbered> tensors) const;

 private:
  /// A parameter that ranks have in parts.
  struct Shared {
    std::size_t number;
    nn::Parameter* parameter;
    std::vector<HeldPart> parts;  // by rank, of a matrix that this rank owns

    std::int64_t of_rank(int rank) const {
      return parts[static_cast<std::size_t>(rank)].elements();
    }
    Tensor join(const Tensor& parts_in_order) const;
    Tensor split(const Tensor& whole) const;
  };
  void round(std::size_t first, const Part& part, const Act& act, const Take& take) const;

  dist::Group* group_ = nullptr;
  std::vector<std::size_t> own_;  // numbers of parameters that this rank has whole
  nn::ParameterList parameters_;
  std::vector<Shared> shared_;  // the largest first, so that those of a round are alike
};

}  // namespace vfm::train
