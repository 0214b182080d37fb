// The files of tensors in a checkpoint, and who of several ranks writes which.
//
// Which tensor lies in which file depends on the parameters alone, not on the number of ranks: so a
// checkpoint has the same bytes whoever wrote it. Each file has one writer, chosen by a pure
// function of the sizes; the order in which it asks for pieces of tensors is one of the file
// (io/safetensors.h). So every rank can know which piece any other asks for next.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "nn/parameter.h"

namespace vfm::train {

/// The elements [begin, end) of the tensor that belongs to parameter i, in the type that it is
/// written in, on any device.
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
  /// `parameters` are those of the whole model, in any order.
  CheckpointFiles(const nn::ParameterList& parameters, std::vector<SavedSet> sets, int ranks);

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

  /// Writes the files of `rank` into the folder of the checkpoint, where the sets' folders are;
  /// returns name -> hash. One piece of a tensor at a time comes to the host.
  std::map<std::string, std::string> write(const std::string& folder, int rank) const;

 private:
  std::vector<SavedSet> sets_;
  std::map<std::string, std::size_t, std::less<>> places_;  // parameters by name
  std::vector<File> files_;
  std::map<std::string, std::string> texts_;
};

}  // namespace vfm::train
