// The files of tensors in a checkpoint, and who of several ranks writes which.
//
// Which tensor lies in which file depends on the whole parameters alone (their names, and the
// global shapes of their placements), not on the number of ranks nor on which of them holds what:
// so a checkpoint has the same bytes whoever wrote it. Each file has one writer, chosen by a pure
// function of the sizes. Of a parameter that ranks hold parts of, it gets the others' from its own
// group (train/checkpoint/checkpoint_pieces.h).
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dist/group.h"
#include "io/safetensors.h"
#include "nn/parameter.h"
#include "train/checkpoint/checkpoint_pieces.h"

namespace vfm::train {

/// The elements [begin, end) of what this rank holds of the tensor that belongs to parameter i, in
/// the type that it is written in, on any device.
using ReadPiece = std::function<Tensor(std::size_t i, std::int64_t begin, std::int64_t end)>;

/// As many tensors as there are parameters, under their names.
struct SavedSet {
  std::string folder, name;  ///< in the checkpoint: "state", "adam_m"
  DType dtype = DType::f32;
  ReadPiece read;
  std::uint64_t max_file_bytes = ~std::uint64_t{0};
  std::string prefix = {};  ///< before their names
  std::map<std::string, std::string> metadata = {};
};

class CheckpointFiles {
 public:
  /// Bytes of a tensor that are in memory, and in a message, at a time.
  static constexpr std::uint64_t kPiece = std::uint64_t{16} << 20;
  /// `parameters` are those of the whole model, in any order, or this rank's parts of them; keeps
  /// the reference.
  CheckpointFiles(const nn::ParameterList& parameters, std::vector<SavedSet> sets, int ranks,
                  std::uint64_t piece = kPiece);

  struct File {
    std::size_t set;  ///< which it belongs to
    io::SafetensorsFile file;
    int writer = 0;
  };
  const std::vector<File>& files() const { return files_; }
  std::string name(const File& file) const;  ///< in the checkpoint

  /// By name in the checkpoint: what rank 0 writes beside them, the indexes of sets of several
  /// files.
  const std::map<std::string, std::string>& texts() const { return texts_; }

  struct Written {
    std::map<std::string, std::string> hashes;  ///< name -> hash
    std::exception_ptr failure;                 ///< of this rank's files, if any
  };
  /// Writes the files of this rank into the folder of the checkpoint, where the sets' folders are.
  /// `holders` have the whole parameters together. A collective of theirs, to its end also where a
  /// file cannot be written.
  Written write(const std::string& folder, dist::Group& holders) const;

 private:
  std::vector<Piece> pieces(const File& file) const;

  const nn::ParameterList& parameters_;
  std::vector<SavedSet> sets_;
  std::uint64_t piece_;
  std::map<std::string, std::size_t, std::less<>> places_;  // parameters by name
  std::vector<File> files_;
  std::map<std::string, std::string> texts_;
};

}  // namespace vfm::train
