// The files of tensors in a checkpoint, and which rank writes each of them.
//
// The distribution of tensors over files depends only on the whole parameters: their names, and the
// global shapes of their placements. It does not depend on the number of ranks or on what each of
// them holds, so a checkpoint has the same bytes whichever ranks write it. Each file has one
// writer, chosen by a pure function of the sizes. If other ranks hold parts of a parameter, the
// writer gets them from its own group (train/checkpoint/checkpoint_pieces.h).
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "nn/parameter.h"
#include "train/checkpoint/checkpoint_pieces.h"

namespace vfm::train {

/// Returns the elements [begin, end) of this rank's part of the tensor for parameter i of the set,
/// as they lie on any device: one tensor of the set's type, or the two halves of a split master
/// (ops/optim/split_master.h), which a set of f32 has joined.
using ViewPiece =
    std::function<std::vector<Tensor>(std::size_t i, std::int64_t begin, std::int64_t end)>;

/// A set of tensors, one for each parameter, under the parameter's name.
struct SavedSet {
  std::string folder, name;  ///< in the checkpoint: "state", "adam_m"
  DType dtype = DType::f32;
  ViewPiece view;
  nn::ParameterList parameters;  ///< those of the whole model, in any order, or this rank's parts
  std::uint64_t max_file_bytes = ~std::uint64_t{0};
  std::string prefix = {};  ///< put before the tensors' names
  std::map<std::string, std::string> metadata = {};
};

class CheckpointFiles {
 public:
  /// Most bytes of a tensor in memory, and in a message, at a time.
  static constexpr std::uint64_t kPiece = std::uint64_t{16} << 20;
  CheckpointFiles(std::vector<SavedSet> sets, int ranks, std::uint64_t piece = kPiece);

  struct File {
    std::size_t set;  ///< number of its set
    io::SafetensorsFile file;
    int writer = 0;
  };
  const std::vector<File>& files() const { return files_; }
  std::string name(const File& file) const;  ///< name in the checkpoint

  /// Text files that rank 0 writes, by name in the checkpoint: the indexes of sets with several
  /// files.
  const std::map<std::string, std::string>& texts() const { return texts_; }

  /// The bytes of a file before its tensors.
  std::string header(const File& file) const;
  /// Bytes of the files of rank `rank`, by file.
  std::vector<std::uint64_t> sizes_of(int rank) const;
  /// Bytes of all tensors, and those of the rank that writes most.
  double bytes() const;
  double most_of_rank() const;

  /// The parameters of all sets, equal lists once.
  const nn::ParameterList& parameters() const { return parameters_; }
  /// What a file has behind its header, in order.
  std::vector<Piece> pieces(const File& file) const;
  /// The elements [begin, end) of this rank's part of a piece's tensor, as they lie (ViewPiece).
  std::vector<Tensor> view(const Piece& piece, std::int64_t begin, std::int64_t end) const {
    return sets_[piece.set].view(piece.parameter - first_[piece.set], begin, end);
  }

 private:
  std::vector<SavedSet> sets_;
  std::uint64_t piece_;
  nn::ParameterList parameters_;
  std::vector<std::size_t> first_;  // by set: where its parameters begin
  // By set: the number of each parameter in the set, by name.
  std::vector<std::map<std::string, std::size_t, std::less<>>> places_;
  std::vector<File> files_;
  std::map<std::string, std::string> texts_;
};

}  // namespace vfm::train
