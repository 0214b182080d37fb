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
#include <exception>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "dist/group.h"
#include "io/safetensors.h"
#include "nn/parameter.h"
#include "train/checkpoint/checkpoint_pieces.h"

namespace vfm::train {

/// Returns the elements [begin, end) of this rank's part of the tensor for parameter i of the set,
/// in the type of the set, on any device.
using ReadPiece = std::function<Tensor(std::size_t i, std::int64_t begin, std::int64_t end)>;

/// A set of tensors, one for each parameter, under the parameter's name.
struct SavedSet {
  std::string folder, name;  ///< in the checkpoint: "state", "adam_m"
  DType dtype = DType::f32;
  ReadPiece read;
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

  /// Is called with each file that this rank writes, in order: first with no bytes, then with those
  /// of its tensors, piece by piece. Valid during the call.
  using Take = std::function<void(const File& file, std::span<const std::byte> bytes)>;
  /// Collects the files of this rank. The ranks of `holders` have the whole parameters together. A
  /// collective of `holders`; after a failure, which is returned, the rank still takes part to the
  /// end, and `take` gets no more.
  std::exception_ptr collect(dist::Group& holders, const Take& take) const;

 private:
  std::vector<Piece> pieces(const File& file) const;

  std::vector<SavedSet> sets_;
  std::uint64_t piece_;
  // The parameters of all sets, equal lists once, and where those of each set begin.
  nn::ParameterList parameters_;
  std::vector<std::size_t> first_;
  // By set: the number of each parameter in the set, by name.
  std::vector<std::map<std::string, std::size_t, std::less<>>> places_;
  std::vector<File> files_;
  std::map<std::string, std::string> texts_;
};

}  // namespace vfm::train
