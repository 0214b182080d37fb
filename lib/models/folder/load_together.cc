// SPDX-License-Identifier: Apache-2.0
#include "models/folder/load_together.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "io/lazy_map.h"
#include "io/tensor_range.h"
#include "models/folder/load_tensors.h"

namespace vfm::models {
namespace {

constexpr std::int64_t kRoundBytes = std::int64_t{64} << 20;  // of all ranks' pieces

/// The elements [begin, end) of a whole tensor of the set.
struct FilePiece {
  const io::TensorView* tensor;
  nn::Parameter* parameter;
  DType dtype;
  std::int64_t begin, end;

  std::int64_t bytes() const {
    return (end - begin) * static_cast<std::int64_t>(dtype_size(dtype));
  }
};

std::vector<FilePiece> pieces_of(const io::TensorSet& set, const nn::ParameterList& parameters,
                                 std::int64_t most) {
  std::vector<FilePiece> pieces;
  for (nn::Parameter* const parameter : parameters) {
    const io::TensorView* const tensor = set.find(parameter->name);
    const DType dtype = is_coded(*tensor) ? DType::f32 : float_type(tensor->dtype);
    const std::int64_t count = tensor->elements();
    const std::int64_t step =
        std::max<std::int64_t>(1, most / static_cast<std::int64_t>(dtype_size(dtype)));
    for (std::int64_t begin = 0; begin < count; begin += step)
      pieces.push_back({tensor, parameter, dtype, begin, std::min(count, begin + step)});
  }
  return pieces;
}

/// Says that a rank reads the piece `first`, and then each of its pieces in the next rounds: of an
/// object they are fetched together.
void expect_next(const io::TensorSet& set, const std::vector<FilePiece>& pieces, std::size_t first,
                 std::size_t ranks) {
  constexpr std::size_t kRounds = 4;
  if (!io::has_lazy_maps() || first / ranks % kRounds != 0) return;
  std::vector<io::TensorSet::Part> parts;
  for (std::size_t i = first; i < std::min(pieces.size(), first + kRounds * ranks); i += ranks) {
    const FilePiece& piece = pieces[i];
    const std::uint64_t item = io::safetensors_item_size(piece.tensor->dtype);
    if (item > 0)
      parts.push_back({piece.tensor, static_cast<std::uint64_t>(piece.begin) * item,
                       static_cast<std::uint64_t>(piece.end) * item});
  }
  set.expect(parts);
}

/// Of a piece what the rank holds, into the parameter.
void take_part(const FilePiece& piece, const Tensor& bytes) {
  const io::TensorRange range = held_range(*piece.parameter);
  // Of a part a rank may hold a stretch alone.
  const std::int64_t begin = piece.parameter->placement.begin,
                     end = begin + piece.parameter->elements();
  const std::int64_t first = std::clamp(range.elements_before(piece.begin), begin, end);
  const std::int64_t last = std::clamp(range.elements_before(piece.end), begin, end);
  if (first == last) return;
  const auto item = static_cast<std::int64_t>(dtype_size(piece.dtype));
  const Tensor part({last - first}, piece.dtype);
  io::RangeRuns(range).for_each(first, last,
                                [&](std::int64_t at, std::int64_t in, std::int64_t count) {
                                  std::memcpy(part.data<std::byte>() + (in - first) * item,
                                              bytes.data<std::byte>() + (at - piece.begin) * item,
                                              static_cast<std::size_t>(count * item));
                                });
  piece.parameter->write(part.to(DType::f32), first - begin);
}

}  // namespace

void load_parameters(const io::TensorSet& set, const nn::ParameterList& parameters,
                     dist::Group& group, std::int64_t piece) {
  std::vector<TensorTarget> wholes;
  for (const nn::Parameter* parameter : parameters)
    wholes.push_back({parameter->name, parameter->placement.global, {}});
  check_tensors(set, wholes);
  const auto ranks = static_cast<std::size_t>(group.size());
  const auto rank = static_cast<std::size_t>(group.rank());
  const std::int64_t most = std::min(piece, kRoundBytes / group.size());
  const std::vector<FilePiece> pieces = pieces_of(set, parameters, most);
  for (std::size_t round = 0; round < pieces.size(); round += ranks) {
    std::vector<std::int64_t> sizes(ranks, 0);
    std::int64_t total = 0, before = 0;
    const std::size_t here = std::min(ranks, pieces.size() - round);
    for (std::size_t r = 0; r < here; ++r) {
      if (r == rank) before = total;
      total += sizes[r] = pieces[round + r].bytes();
    }
    if (rank < here) expect_next(set, pieces, round + rank, ranks);
    const Tensor all({total}, DType::u8);
    const Tensor mine =
        rank < here ? all.rows(before, before + sizes[rank]) : Tensor({0}, DType::u8);
    if (rank < here) {
      const FilePiece& own = pieces[round + rank];
      if (is_coded(*own.tensor)) {
        const Tensor values = read_floats(*own.tensor, own.begin, own.end - own.begin);
        std::memcpy(mine.raw(), values.raw(), mine.bytes());
      } else {
        set.read(own.tensor->name, io::TensorRange::whole(own.tensor->shape), own.begin,
                 {mine.data<std::byte>(), mine.bytes()});
      }
    }
    group.all_gather(mine, all, sizes).wait();
    std::int64_t at = 0;
    for (std::size_t r = 0; r < here; at += sizes[r++])
      take_part(pieces[round + r], all.rows(at, at + sizes[r]));
    if (rank < here) set.release(*pieces[round + rank].tensor);
  }
}

}  // namespace vfm::models
