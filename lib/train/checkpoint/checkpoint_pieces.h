// Sends pieces of parameters from the ranks that hold them to the ranks that write them.
//
// The ranks of a group hold the whole model together. Every rank knows which pieces of whole
// tensors each rank writes, and in what order. They are sent in rounds: in round k each writer gets
// the k-th of its pieces. The elements of a piece on a rank are one stretch of the rank's part, so
// they are one message, and the writer puts them where they belong. A round starts all its messages
// and then waits for them. So ranks with nothing left to write take part until the last round, even
// if they failed to write what they got. A writer holds one piece and its messages at a time. After
// an Error of the group the group cannot be used. Thread-safety: the thread that made the world.
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

/// The part of a tensor that a rank holds: a box, or a stretch of a box's elements in C order.
struct HeldPart {
  io::TensorRange box;
  std::int64_t begin = 0, end = 0;  ///< elements of the box

  std::int64_t elements() const { return end - begin; }
  /// True if `other` is the same part of the same tensor.
  bool like(const HeldPart& other) const {
    return box.offset == other.box.offset && box.length == other.box.length &&
           begin == other.begin && end == other.end;
  }
  /// Counts the elements of this part that come before element `at` of the whole tensor.
  std::int64_t elements_before(std::int64_t at) const {
    return std::clamp(box.elements_before(at), begin, end) - begin;
  }
};

/// The part of each parameter that each rank holds, by number of the parameter.
class HeldParts {
 public:
  /// A collective of the ranks that have the model together; all of them have the same parameters.
  /// Throws Error if the parts of a parameter are not all of it.
  HeldParts(dist::Group& group, const nn::ParameterList& parameters);

  /// True if some rank does not hold the whole parameter; the same on all ranks.
  bool is_cut(std::size_t parameter) const { return cut_[parameter]; }
  /// The part that the rank sends of a parameter that is cut. If several hold the same part, only
  /// the first of them sends it.
  const HeldPart& part(std::size_t parameter, int rank) const {
    return parts_[parameter][static_cast<std::size_t>(rank)];
  }

 private:
  std::vector<std::vector<HeldPart>> parts_;  // by parameter and rank
  std::vector<bool> cut_;
};

/// The elements [begin, end) in C order of a whole tensor. A parameter has a tensor in each set of
/// the caller.
struct Piece {
  std::size_t set = 0, parameter = 0;
  DType dtype = DType::f32;
  std::int64_t begin = 0, end = 0;
};

class PieceRounds {
 public:
  /// Returns the elements [begin, end) of this rank's part of the piece's tensor, in the piece's
  /// type, on any device.
  using Read = std::function<Tensor(const Piece&, std::int64_t begin, std::int64_t end)>;
  /// `pieces` are those that each rank writes, by rank, the same on all ranks. Keeps the
  /// references.
  PieceRounds(dist::Group& group, const HeldParts& held, std::vector<std::vector<Piece>> pieces,
              Read read);

  /// True if any rank has rounds left.
  bool left() const { return round_ < rounds_; }
  /// Runs the next round. Returns this rank's next piece on the host; undefined if it has none
  /// left. A collective.
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
