// Collects the files of a checkpoint that a rank writes from the ranks that hold their tensors.
//
// A piece of a tensor that the writer has whole comes from its own device. The other pieces come in
// rounds from the ranks that hold parts of them (train/checkpoint/checkpoint_pieces.h).
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "dist/group.h"
#include "train/checkpoint/checkpoint_files.h"
#include "train/checkpoint/checkpoint_pieces.h"

namespace vfm::train {

class FileCollection {
 public:
  /// The ranks of `holders` have the whole parameters together. A collective of `holders`.
  FileCollection(CheckpointFiles files, dist::Group& holders);

  const CheckpointFiles& files() const { return files_; }

  /// The elements [begin, end) of this rank's part of a piece's tensor.
  struct Own {
    Piece piece;
    std::int64_t begin = 0, end = 0;
    const CheckpointFiles::File* file = nullptr;  ///< null: it is put together with other parts
    std::size_t offset = 0;                       ///< in the file, behind its header

    std::size_t bytes() const {
      return static_cast<std::size_t>(end - begin) * dtype_size(piece.dtype);
    }
  };
  /// All that run() reads on this rank.
  std::vector<Own> own() const;

  /// Is called with each file that this rank writes, in order: first with no bytes, then with those
  /// of its tensors, piece by piece. Valid during the call. The bytes of a piece that is in its
  /// place have no address.
  using Take = std::function<void(const CheckpointFiles::File& file, std::span<const std::byte>)>;
  /// Returns elements of this rank's part of a piece on any device; undefined if the piece is whole
  /// and in its place.
  using Read = PieceRounds::Read;
  /// Reads from the devices.
  Read reader() const;
  /// A collective of the holders. After a failure, which is returned, this rank still takes part to
  /// the end, and `take` gets no more.
  std::exception_ptr run(const Take& take, const Read& read) const;

 private:
  bool writes(const CheckpointFiles::File& file) const {
    return file.writer == holders_.ranks()[static_cast<std::size_t>(holders_.rank())];
  }
  HeldParts held_by(dist::Group& holders);

  const CheckpointFiles files_;
  dist::Group& holders_;
  const std::vector<bool> cut_;             // by parameter
  std::vector<std::vector<Piece>> shared_;  // by rank: those of cut parameters that it writes
  const HeldParts held_;
};

/// The tensor of what lies as one or as the halves of a split master, on its device.
Tensor join(const std::vector<Tensor>& parts);

}  // namespace vfm::train
