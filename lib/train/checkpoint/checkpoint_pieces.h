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
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
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
  /// Compares the parts of one tensor.
  std::strong_ordering operator<=>(const HeldPart& other) const {
    return std::tie(box.offset, box.length, begin, end) <=>
           std::tie(other.box.offset, other.box.length, other.begin, other.end);
  }
  bool operator==(const HeldPart& other) const { return (*this <=> other) == 0; }
  /// Counts the elements of this part that come before element `at` of the whole tensor.
  std::int64_t elements_before(std::int64_t at) const {
    return std::clamp(box.elements_before(at), begin, end) - begin;
  }
};

/// The part that a parameter holds, or wants, of its whole tensor.
HeldPart part_of(const nn::Parameter& parameter);

/// The part of a rank of the group.
struct RankPart {
  int rank = 0;
  HeldPart part;
};

/// By rank the numbers of some tensors, the same lists on all ranks.
using TensorsOfRanks = std::vector<std::vector<std::size_t>>;

/// Each rank has a part of each tensor, `own`. It learns all ranks' parts of those tensors that the
/// list of this rank in `wanted` names, and of no other: so what it gets and keeps grows with the
/// ranks for its own tensors alone. Returns by tensor the parts that are not empty, by ascending
/// rank. A collective.
std::vector<std::vector<RankPart>> tell_parts(dist::Group& group, const std::vector<HeldPart>& own,
                                              const TensorsOfRanks& wanted);

/// Returns which parameters some rank does not hold whole; the same on all ranks. A collective of
/// the ranks that have the model together; all of them have the same parameters.
std::vector<bool> cut_parameters(dist::Group& group, const nn::ParameterList& parameters);

/// What the ranks that have the model together send of parameters that are cut.
class HeldParts {
 public:
  /// `readers` lists of each rank the cut parameters that it puts together. Throws Error if the
  /// parts of such a parameter are not all of it. A collective.
  HeldParts(dist::Group& group, const nn::ParameterList& parameters, const TensorsOfRanks& readers);

  /// The part that this rank sends of a parameter that some rank puts together. If several hold
  /// the same part, only the first of them sends it, and the others' parts are empty.
  const HeldPart& own(std::size_t parameter) const { return own_[parameter]; }
  /// Of a parameter that this rank puts together, all that are sent and are not empty, by
  /// ascending rank.
  const std::vector<RankPart>& parts(std::size_t parameter) const { return parts_[parameter]; }

 private:
  std::vector<HeldPart> own_;
  std::vector<std::vector<RankPart>> parts_;  // by parameter
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
  Tensor own_part(const Piece& piece) const;

  dist::Group& group_;
  const HeldParts& held_;
  const std::vector<std::vector<Piece>> pieces_;
  std::vector<int> writers_;  // the ranks that have pieces
  const Read read_;
  std::size_t round_ = 0, rounds_ = 0;
};

}  // namespace vfm::train
