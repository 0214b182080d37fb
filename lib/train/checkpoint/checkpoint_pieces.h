// Pieces of parameters of which each rank holds a part, brought to the ranks that write them.
//
// The ranks of a group hold the whole model together. Every one knows which pieces of whole tensors
// each of them writes, in what order, and they go in rounds: in round k each writer gets the k-th
// of its pieces. What a rank holds of a piece is one stretch of its own part, so it is one message,
// and the writer puts its elements where they belong. A round starts all its messages and then
// waits for them; so the ranks that have nothing left to write stay until the last one is done,
// also if they failed with what they got. At a writer there are a piece and what it is made of.
// Errors: those of the group, after which it is of no more use. Thread-safety: the thread that made
// the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "dist/group.h"
#include "io/tensor_range.h"
#include "nn/parameter.h"

namespace vfm::train {

/// Of a tensor what a rank holds: a box, or a stretch of its elements in C order.
struct HeldPart {
  io::TensorRange box;
  std::int64_t begin = 0, end = 0;  ///< of the box

  std::int64_t elements() const { return end - begin; }
  /// Whether `other` is the same part of the same tensor.
  bool like(const HeldPart& other) const {
    return box.offset == other.box.offset && box.length == other.box.length &&
           begin == other.begin && end == other.end;
  }
  /// How many of them come before element `at` of the whole tensor.
  std::int64_t elements_before(std::int64_t at) const {
    return std::clamp(box.elements_before(at), begin, end) - begin;
  }
};

/// Which part of each parameter each rank holds, by number of the parameter.
class HeldParts {
 public:
  /// A collective of the ranks that have the model together, which have the same parameters. Throws
  /// Error if the parts of one are not all of it.
  HeldParts(dist::Group& group, const nn::ParameterList& parameters);

  /// Whether there are ranks that do not hold all of it; the same on all ranks.
  bool is_cut(std::size_t parameter) const { return cut_[parameter]; }
  /// What the rank gives of one that is cut: of a part that several hold the first of them alone.
  const HeldPart& part(std::size_t parameter, int rank) const {
    return parts_[parameter][static_cast<std::size_t>(rank)];
  }

 private:
  std::vector<std::vector<HeldPart>> parts_;  // by parameter and rank
  std::vector<bool> cut_;
};

/// The elements [begin, end) of a whole tensor, in C order: of one of the tensors that belong to a
/// parameter, which one is the caller's matter.
struct Piece {
  std::size_t set = 0, parameter = 0;
  DType dtype = DType::f32;
  std::int64_t begin = 0, end = 0;
};

class PieceRounds {
 public:
  /// Gives the elements [begin, end) of this rank's part of the piece's tensor, of its type, on any
  /// device.
  using Read = std::function<Tensor(const Piece&, std::int64_t begin, std::int64_t end)>;
  /// `pieces`: by rank, those it writes, the same on all ranks. Keeps the references.
  PieceRounds(dist::Group& group, const HeldParts& held, std::vector<std::vector<Piece>> pieces,
              Read read);

  /// Whether there are rounds left, for whichever rank.
  bool left() const { return round_ < rounds_; }
  /// The next round. Returns this rank's next piece, on the host; undefined if it has none left. A
  /// collective.
  Tensor next();

 private:
  struct Stretch {
    std::int64_t begin, end;
  };
  Stretch stretch(const Piece& piece, int rank) const;
  Tensor own_part(const Piece& piece) const;

  dist::Group& group_;
  const HeldParts& held_;
  const std::vector<std::vector<Piece>> pieces_;
  const Read read_;
  std::size_t round_ = 0, rounds_ = 0;
};

}  // namespace vfm::train
