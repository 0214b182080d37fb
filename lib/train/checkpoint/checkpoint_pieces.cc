// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_pieces.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/error.h"
#include "models/folder/load_tensors.h"

namespace vfm::train {
namespace {

/// Puts what a rank holds of a piece, from element `begin` of its part on, in its places there.
void place(const Tensor& values, const HeldPart& part, std::int64_t begin, const Piece& piece,
           const Tensor& whole) {
  const auto item = static_cast<std::int64_t>(dtype_size(piece.dtype));
  const std::int64_t first = part.begin + begin;  // in the box
  io::RangeRuns(part.box).for_each(
      first, first + values.elements(), [&](std::int64_t at, std::int64_t in, std::int64_t count) {
        std::memcpy(whole.data<std::byte>() + (at - piece.begin) * item,
                    values.data<std::byte>() + (in - first) * item,
                    static_cast<std::size_t>(count * item));
      });
}

/// Of a part that several ranks have the first one keeps it. Returns the elements of all.
std::int64_t leave_first_of_each(std::vector<HeldPart>& parts) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before)
      if (parts[before].like(parts[i])) parts[i].end = parts[i].begin;
    sum += parts[i].elements();
  }
  return sum;
}

}  // namespace

HeldParts::HeldParts(dist::Group& group, const nn::ParameterList& parameters) {
  std::vector<std::int64_t> own;  // of each parameter its box by dim, and the stretch of it
  for (const nn::Parameter* parameter : parameters) {
    const io::TensorRange part = models::held_range(*parameter);
    own.insert(own.end(), part.offset.begin(), part.offset.end());
    own.insert(own.end(), part.length.begin(), part.length.end());
    const std::int64_t begin = parameter->placement.begin;
    own.insert(own.end(), {begin, begin + parameter->elements()});
  }
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<std::int64_t> all(own.size() * ranks);
  group
      .all_gather(dist::lend(std::as_writable_bytes(std::span(own))),
                  dist::lend(std::as_writable_bytes(std::span(all))))
      .wait();
  std::size_t at = 0;  // in what each rank said
  for (const nn::Parameter* parameter : parameters) {
    const Shape& shape = parameter->placement.global;
    std::vector<HeldPart>& parts = parts_.emplace_back();
    const std::int64_t elements = element_count(shape);
    bool whole = true;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto said = all.begin() + static_cast<std::ptrdiff_t>(rank * own.size() + at);
      const auto dims = static_cast<std::ptrdiff_t>(shape.size());
      const auto stretch = said + 2 * dims;
      parts.push_back(
          {{shape, Shape(said, said + dims), Shape(said + dims, stretch)}, stretch[0], stretch[1]});
      const HeldPart& part = parts.back();
      if (!part.box.lies_within() || part.begin < 0 || part.end > part.box.elements())
        fail("rank {} of '{}' has no part of '{}', {}", rank, group.axis(), parameter->name,
             to_string(shape));
      whole = whole && part.elements() == elements;
    }
    cut_.push_back(!whole);
    const std::int64_t sum = whole ? elements : leave_first_of_each(parts);
    if (sum != elements)
      fail("the ranks of '{}' have {} elements of '{}', {}", group.axis(), sum, parameter->name,
           to_string(shape));
    at += 2 * shape.size() + 2;
  }
}

PieceRounds::PieceRounds(dist::Group& group, const HeldParts& held,
                         std::vector<std::vector<Piece>> pieces, Read read)
    : group_(group), held_(held), pieces_(std::move(pieces)), read_(std::move(read)) {
  for (const std::vector<Piece>& list : pieces_)
    rounds_ = std::max(rounds_, list.size());
}

/// What a rank holds of a piece, in elements of its part.
PieceRounds::Stretch PieceRounds::stretch(const Piece& piece, int rank) const {
  const HeldPart& part = held_.part(piece.parameter, rank);
  return {part.elements_before(piece.begin), part.elements_before(piece.end)};
}

Tensor PieceRounds::own_part(const Piece& piece) const {
  const auto [begin, end] = stretch(piece, group_.rank());
  return read_(piece, begin, end).to(Device::cpu);
}

Tensor PieceRounds::next() {
  const std::size_t round = round_++;
  std::vector<dist::Transfer> transfers;
  const Piece* mine = nullptr;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const std::vector<Piece>& list = pieces_[static_cast<std::size_t>(rank)];
    if (round >= list.size()) continue;
    if (rank == group_.rank())
      mine = &list[round];
    else if (const Tensor part = own_part(list[round]); part.elements() > 0)
      transfers.push_back(group_.send(rank, part));
  }
  std::vector<Tensor> parts;  // of my piece, by rank
  if (mine != nullptr)
    for (int rank = 0; rank < group_.size(); ++rank) {
      const auto [begin, end] = stretch(*mine, rank);
      parts.push_back(rank == group_.rank() ? own_part(*mine) : Tensor({end - begin}, mine->dtype));
      if (rank != group_.rank() && end > begin)
        transfers.push_back(group_.receive(rank, parts.back()));
    }
  for (dist::Transfer& transfer : transfers)
    transfer.wait();
  if (mine == nullptr) return {};
  const Tensor whole({mine->end - mine->begin}, mine->dtype);
  for (int rank = 0; rank < group_.size(); ++rank)
    place(parts[static_cast<std::size_t>(rank)], held_.part(mine->parameter, rank),
          stretch(*mine, rank).begin, *mine, whole);
  return whole;
}

}  // namespace vfm::train
