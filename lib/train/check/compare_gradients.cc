// SPDX-License-Identifier: Apache-2.0
#include "train/check/compare_gradients.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/xxh3.h"
#include "models/folder/load_tensors.h"

namespace vfm::train {
namespace {

constexpr std::int64_t kPiece = std::int64_t{4} << 20;  // elements of a message

/// What each rank has of each parameter, on rank 0. By words, which go another way than what is to
/// be proved.
std::vector<std::vector<HeldPart>> gather_parts(dist::Group& holders,
                                                const nn::ParameterList& parameters) {
  Json own = Json::array();
  for (const nn::Parameter* p : parameters) {
    const io::TensorRange box = models::held_range(*p);
    own.push_back({box.offset, box.length, p->placement.begin, p->elements()});
  }
  std::string text = dump_json(Json(holders.gather(dump_json(own))));  // of rank 0 for all
  std::size_t size = text.size();
  holders.broadcast(dist::lend(std::as_writable_bytes(std::span(&size, 1))), 0).wait();
  text.resize(size);
  holders.broadcast(dist::lend(std::as_writable_bytes(std::span(text))), 0).wait();
  std::vector<std::vector<HeldPart>> parts(parameters.size());
  for (const Json& one : parse_json(text, "the lists of parts")) {
    const Json said = parse_json(one.get<std::string>(), "a rank's list of parts");
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto begin = said[i][2].get<std::int64_t>();
      parts[i].push_back(
          {{parameters[i]->placement.global, said[i][0].get<Shape>(), said[i][1].get<Shape>()},
           begin,
           begin + said[i][3].get<std::int64_t>()});
    }
  }
  return parts;
}

template <class Act>
void for_each_piece(std::int64_t elements, const Act& act) {
  for (std::int64_t begin = 0; begin < elements; begin += kPiece)
    act(begin, std::min(begin + kPiece, elements));
}

Tensor piece_of(const Tensor& values, std::int64_t begin, std::int64_t end) {
  return values.reshape({values.elements()}).rows(begin, end);
}

}  // namespace

void GradientSquares::add(std::span<const float> made_here, std::span<const float> expected_here) {
  for (std::size_t i = 0; i < made_here.size(); ++i) {
    const double a = expected_here[i], b = made_here[i];
    expected += a * a;
    made += b * b;
    difference += (a - b) * (a - b);
  }
  elements += static_cast<std::int64_t>(made_here.size());
}

GradientSquares& GradientSquares::operator+=(const GradientSquares& other) {
  expected += other.expected;
  made += other.made;
  difference += other.difference;
  elements += other.elements;
  return *this;
}

GradientComparer::GradientComparer(dist::Group& holders, const nn::ParameterList& parameters)
    : holders_(holders), parts_(gather_parts(holders, parameters)) {}

/// Of a part that several have the first one gives it.
bool GradientComparer::gives(std::size_t index, int rank) const {
  const auto own = parts_[index].begin() + rank;
  return own->elements() > 0 && std::none_of(parts_[index].begin(), own,
                                             [&](const HeldPart& part) { return part == *own; });
}

GradientSquares GradientComparer::compare(std::size_t index, const Tensor& made,
                                          const Tensor* expected) const {
  if (expected != nullptr) return receive(index, made, *expected);
  if (!gives(index, holders_.rank())) return {};
  for_each_piece(made.elements(), [&](std::int64_t begin, std::int64_t end) {
    holders_.send(0, piece_of(made, begin, end)).wait();
  });
  return {};
}

GradientSquares GradientComparer::receive(std::size_t index, const Tensor& made,
                                          const Tensor& expected) const {
  GradientSquares squares;
  for (int rank = 0; rank < holders_.size(); ++rank) {
    if (!gives(index, rank)) continue;
    const HeldPart& part = parts_[index][static_cast<std::size_t>(rank)];
    const io::RangeRuns runs(part.box);
    for_each_piece(part.elements(), [&](std::int64_t begin, std::int64_t end) {
      Tensor piece;
      if (rank == 0) {
        piece = piece_of(made, begin, end);
      } else {
        piece = Tensor({end - begin}, DType::f32, made.device());
        holders_.receive(rank, piece).wait();
      }
      piece = piece.to(Device::cpu);
      const std::int64_t first = part.begin + begin;  // in the box
      runs.for_each(first, part.begin + end,
                    [&](std::int64_t at, std::int64_t in, std::int64_t count) {
                      const auto run = static_cast<std::size_t>(count);
                      squares.add(piece.floats().subspan(static_cast<std::size_t>(in - first), run),
                                  expected.floats().subspan(static_cast<std::size_t>(at), run));
                    });
    });
  }
  return squares;
}

std::uint64_t hash_of(const Tensor& values) {
  const Tensor here = values.to(Device::cpu);
  return xxh3_64(here.raw(), here.bytes());
}

std::vector<Stray> find_strays(const dist::Mesh& mesh, const nn::ParameterList& parameters,
                               const std::function<Tensor(const nn::Parameter&)>& of) {
  std::vector<std::uint64_t> hashes;
  for (const nn::Parameter* p : parameters)
    hashes.push_back(hash_of(of(*p)));
  return find_strays(mesh, parameters, hashes);
}

std::vector<Stray> find_strays(const dist::Mesh& mesh, const nn::ParameterList& parameters,
                               std::span<const std::uint64_t> hashes) {
  Json own = Json::array();  // of each parameter which part it is, and the hash of its values
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const nn::Parameter* p = parameters[i];
    own.push_back({p->placement.offset, p->placement.begin, p->elements(), hashes[i]});
  }
  std::vector<Stray> strays(parameters.size());
  std::vector<std::map<std::string, std::pair<int, std::uint64_t>>> first(parameters.size());
  int rank = 0;
  for (const std::string& text : mesh.world().gather(dump_json(own))) {
    const Json all = parse_json(text, "a rank's hashes");
    for (std::size_t i = 0; i < strays.size(); ++i) {
      const auto hash = all[i][3].get<std::uint64_t>();
      const auto [found, fresh] =
          first[i].try_emplace(dump_json({all[i][0], all[i][1], all[i][2]}), rank, hash);
      if (strays[i].rank < 0 && found->second.second != hash)
        strays[i] = {rank, found->second.first};
    }
    ++rank;
  }
  return strays;
}

}  // namespace vfm::train
