// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_pieces.h"

#include <algorithm>
#include <cstring>
#include <numeric>
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

std::size_t numbers_of(const Shape& shape) {
  return 2 * shape.size() + 2;
}

/// What a rank says of its part: its box by dim, and the stretch of it.
void say(const HeldPart& part, std::vector<std::int64_t>& numbers) {
  numbers.insert(numbers.end(), part.box.offset.begin(), part.box.offset.end());
  numbers.insert(numbers.end(), part.box.length.begin(), part.box.length.end());
  numbers.insert(numbers.end(), {part.begin, part.end});
}

HeldPart understand(const std::int64_t* numbers, const Shape& shape) {
  const std::int64_t* const length = numbers + shape.size();
  const std::int64_t* const stretch = length + shape.size();
  return {{shape, Shape(numbers, length), Shape(length, stretch)}, stretch[0], stretch[1]};
}

Tensor bytes_of(std::vector<std::int64_t>& numbers) {
  return dist::lend(std::as_writable_bytes(std::span(numbers)));
}

/// Of a part that several ranks have the first one keeps it. Returns the elements of all.
std::int64_t leave_first_of_each(std::vector<RankPart>& parts) {
  std::ranges::stable_sort(parts, {}, &RankPart::part);
  const auto like = [](const RankPart& a, const RankPart& b) { return a.part == b.part; };
  parts.erase(std::unique(parts.begin(), parts.end(), like), parts.end());
  std::ranges::sort(parts, {}, &RankPart::rank);
  std::int64_t sum = 0;
  for (const RankPart& one : parts)
    sum += one.part.elements();
  return sum;
}

/// The ranks whose parts are used answer: returns whether this rank sends its part, by parameter.
std::vector<bool> ask_who_sends(dist::Group& group, const std::vector<std::vector<RankPart>>& parts,
                                const TensorsOfRanks& readers) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const std::vector<std::size_t>& mine = readers[static_cast<std::size_t>(group.rank())];
  std::vector<std::uint8_t> answers(mine.size() * ranks);  // by rank and parameter
  for (std::size_t k = 0; k < mine.size(); ++k)
    for (const RankPart& one : parts[mine[k]])
      answers[static_cast<std::size_t>(one.rank) * mine.size() + k] = 1;
  std::vector<std::int64_t> to(ranks, static_cast<std::int64_t>(mine.size())), from;
  for (const std::vector<std::size_t>& list : readers)
    from.push_back(static_cast<std::int64_t>(list.size()));
  std::vector<std::uint8_t> heard(
      static_cast<std::size_t>(std::accumulate(from.begin(), from.end(), std::int64_t{0})));
  group
      .all_to_all(dist::lend(std::as_writable_bytes(std::span(answers))),
                  dist::lend(std::as_writable_bytes(std::span(heard))), to, from)
      .wait();
  std::vector<bool> sends(parts.size(), false);
  std::size_t at = 0;
  for (const std::vector<std::size_t>& list : readers)
    for (const std::size_t parameter : list)
      sends[parameter] = heard[at++] != 0;
  return sends;
}

}  // namespace

HeldPart part_of(const nn::Parameter& parameter) {
  const std::int64_t begin = parameter.placement.begin;
  HeldPart part{models::held_range(parameter), begin, begin + parameter.elements()};
  if (!part.box.lies_within() || begin < 0 || part.end > part.box.elements())
    fail("this rank has no part of '{}', {}", parameter.name,
         to_string(parameter.placement.global));
  return part;
}

std::vector<std::vector<RankPart>> tell_parts(dist::Group& group, const std::vector<HeldPart>& own,
                                              const TensorsOfRanks& wanted) {
  const auto rank = static_cast<std::size_t>(group.rank());
  std::int64_t awaited = 0;  // from each rank
  for (const std::size_t i : wanted[rank])
    awaited += static_cast<std::int64_t>(numbers_of(own[i].box.shape));
  std::vector<std::int64_t> said, to;
  for (const std::vector<std::size_t>& list : wanted) {
    const std::size_t before = said.size();
    for (const std::size_t i : list)
      say(own[i], said);
    to.push_back(static_cast<std::int64_t>((said.size() - before) * sizeof(std::int64_t)));
  }
  std::vector<std::int64_t> heard(static_cast<std::size_t>(awaited) * wanted.size());
  const std::vector<std::int64_t> from(wanted.size(),
                                       awaited * static_cast<std::int64_t>(sizeof(std::int64_t)));
  group.all_to_all(bytes_of(said), bytes_of(heard), to, from).wait();
  std::vector<std::vector<RankPart>> parts(own.size());
  const std::int64_t* at = heard.data();
  for (int other = 0; other < group.size(); ++other)
    for (const std::size_t i : wanted[rank]) {
      HeldPart part = understand(at, own[i].box.shape);
      at += numbers_of(own[i].box.shape);
      if (part.elements() > 0) parts[i].push_back({other, std::move(part)});
    }
  return parts;
}

std::vector<bool> cut_parameters(dist::Group& group, const nn::ParameterList& parameters) {
  std::vector<double> partial;
  for (const nn::Parameter* parameter : parameters)
    partial.push_back(parameter->elements() != element_count(parameter->placement.global));
  group.all_reduce(std::span(partial)).wait();
  std::vector<bool> cut;
  for (const double ranks : partial)
    cut.push_back(ranks > 0);
  return cut;
}

HeldParts::HeldParts(dist::Group& group, const nn::ParameterList& parameters,
                     const TensorsOfRanks& readers) {
  for (const nn::Parameter* parameter : parameters)
    own_.push_back(part_of(*parameter));
  parts_ = tell_parts(group, own_, readers);
  for (const std::size_t i : readers[static_cast<std::size_t>(group.rank())]) {
    const Shape& shape = parameters[i]->placement.global;
    if (const std::int64_t sum = leave_first_of_each(parts_[i]); sum != element_count(shape))
      fail("the ranks of '{}' have {} elements of '{}', {}", group.axis(), sum, parameters[i]->name,
           to_string(shape));
  }
  const std::vector<bool> sends = ask_who_sends(group, parts_, readers);
  for (std::size_t i = 0; i < own_.size(); ++i)
    if (!sends[i]) own_[i].end = own_[i].begin;
}

PieceRounds::PieceRounds(dist::Group& group, const HeldParts& held,
                         std::vector<std::vector<Piece>> pieces, Read read)
    : group_(group), held_(held), pieces_(std::move(pieces)), read_(std::move(read)) {
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::size_t count = pieces_[static_cast<std::size_t>(rank)].size();
    if (count > 0) writers_.push_back(rank);
    rounds_ = std::max(rounds_, count);
  }
}

Tensor PieceRounds::own_part(const Piece& piece) const {
  const HeldPart& part = held_.own(piece.parameter);
  return read_(piece, part.elements_before(piece.begin), part.elements_before(piece.end))
      .to(Device::cpu);
}

Tensor PieceRounds::next() {
  const std::size_t round = round_++;
  std::vector<dist::Transfer> transfers;
  const Piece* mine = nullptr;
  for (const int rank : writers_) {
    const std::vector<Piece>& list = pieces_[static_cast<std::size_t>(rank)];
    if (round >= list.size()) continue;
    if (rank == group_.rank())
      mine = &list[round];
    else if (const Tensor part = own_part(list[round]); part.elements() > 0)
      transfers.push_back(group_.send(rank, part));
  }
  struct Received {
    const HeldPart* part;
    std::int64_t begin;  // of its elements
    Tensor values;
  };
  std::vector<Received> received;  // of my piece
  if (mine != nullptr)
    for (const RankPart& one : held_.parts(mine->parameter)) {
      const std::int64_t begin = one.part.elements_before(mine->begin),
                         count = one.part.elements_before(mine->end) - begin;
      if (count == 0) continue;
      const bool own = one.rank == group_.rank();
      received.push_back({&one.part, begin, own ? own_part(*mine) : Tensor({count}, mine->dtype)});
      if (!own) transfers.push_back(group_.receive(one.rank, received.back().values));
    }
  for (dist::Transfer& transfer : transfers)
    transfer.wait();
  if (mine == nullptr) return {};
  const Tensor whole({mine->end - mine->begin}, mine->dtype);
  for (const Received& one : received)
    place(one.values, *one.part, one.begin, *mine, whole);
  return whole;
}

}  // namespace vfm::train
