// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/file_collection.h"

#include <algorithm>
#include <utility>

#include "ops/optim/split_master.h"

namespace vfm::train {

FileCollection::FileCollection(CheckpointFiles files, dist::Group& holders)
    : files_(std::move(files)),
      holders_(holders),
      cut_(cut_parameters(holders, files_.parameters())),
      shared_(holders.ranks().size()),
      held_(held_by(holders)) {}

/// Fills shared_.
HeldParts FileCollection::held_by(dist::Group& holders) {
  TensorsOfRanks readers(shared_.size());
  for (const CheckpointFiles::File& file : files_.files()) {
    const auto found = std::ranges::lower_bound(holders.ranks(), file.writer);
    if (found == holders.ranks().end() || *found != file.writer) continue;
    const auto writer = static_cast<std::size_t>(found - holders.ranks().begin());
    for (const Piece& piece : files_.pieces(file))
      if (cut_[piece.parameter]) {
        shared_[writer].push_back(piece);
        readers[writer].push_back(piece.parameter);
      }
  }
  for (std::vector<std::size_t>& list : readers) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return {holders, files_.parameters(), readers};
}

std::vector<FileCollection::Own> FileCollection::own() const {
  std::vector<Own> all;
  for (const CheckpointFiles::File& file : files_.files()) {
    if (!writes(file)) continue;
    std::size_t offset = 0;
    for (const Piece& piece : files_.pieces(file)) {
      const Own whole{piece, piece.begin, piece.end, &file, offset};
      offset += whole.bytes();
      if (!cut_[piece.parameter]) all.push_back(whole);
    }
  }
  for (const std::vector<Piece>& list : shared_)
    for (const Piece& piece : list) {
      const HeldPart& part = held_.own(piece.parameter);
      const Own own{piece, part.elements_before(piece.begin), part.elements_before(piece.end)};
      if (own.begin < own.end) all.push_back(own);
    }
  return all;
}

FileCollection::Read FileCollection::reader() const {
  return [this](const Piece& piece, std::int64_t begin, std::int64_t end) {
    return join(files_.view(piece, begin, end));
  };
}

std::exception_ptr FileCollection::run(const Take& take, const Read& read) const {
  PieceRounds rounds(holders_, held_, shared_, read);
  std::exception_ptr failure;
  const auto attempt = [&failure](const auto& act) {
    try {
      if (!failure) act();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  for (const CheckpointFiles::File& file : files_.files()) {
    if (!writes(file)) continue;
    attempt([&] { take(file, {}); });
    for (const Piece& piece : files_.pieces(file)) {
      Tensor values;
      if (cut_[piece.parameter]) values = rounds.next();
      attempt([&] {
        if (!values.defined()) values = read(piece, piece.begin, piece.end);
        const std::size_t bytes =
            static_cast<std::size_t>(piece.end - piece.begin) * dtype_size(piece.dtype);
        if (!values.defined()) return take(file, {static_cast<const std::byte*>(nullptr), bytes});
        values = values.to(Device::cpu);
        take(file, {values.data<std::byte>(), bytes});
      });
    }
  }
  while (rounds.left())
    rounds.next();
  return failure;
}

Tensor join(const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return parts[0];
  Tensor joined(parts[0].shape(), DType::f32, parts[0].device());
  ops::join_master(parts[0], parts[1], joined);
  return joined;
}

}  // namespace vfm::train
