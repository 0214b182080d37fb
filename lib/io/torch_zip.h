// Reads checkpoints of PyTorch 1.6 and later (.pt, .pth, .bin), and scripted modules (.jit). A
// checkpoint is a zip archive. It has a pickle, which describes the tensors, and one member for
// each storage.
//
//   NAME/data.pkl      io/pickle.h
//   NAME/data/3        the numbers of storage "3"
//   NAME/byteorder     "little", or absent
//
// The reader never runs code. Files from before PyTorch 1.6 are refused, and the message says how
// to convert them. Source: PyTorch torch/serialization.py; caffe2/serialize/inline_container.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/tensor_set.h"

namespace vfm::io {

struct TorchContents {
  std::vector<TensorView> tensors;  ///< Tensors with data in the file or in `gathered`.
  /// Data of tensors that were not contiguous.
  std::vector<std::unique_ptr<std::byte[]>> gathered;
};

/// Parses a whole file. Throws Error, which names `what`, for invalid contents, such as a tensor
/// outside its storage, a storage and a member of different sizes, or an expanded tensor (larger
/// than its stored data). Memory is at most a few times the size of the file. The bytes may be
/// hostile. Pure; fuzzed.
TorchContents parse_torch_zip(std::span<const std::byte> bytes, std::string_view what);

/// The memory-mapped tensors of a checkpoint, or of all files of an index (io/weight_index.h).
class TorchZip : public TensorSet {
 public:
  /// Opens a checkpoint, or an index if the name of `file` ends with ".json". Throws Error if a
  /// file is missing, if parse_torch_zip() refuses a file, or if a tensor of the index is missing.
  explicit TorchZip(const std::string& file);

  void release(const TensorView& tensor) const override;

 private:
  std::vector<MappedFile> maps_;
  std::vector<std::unique_ptr<std::byte[]>> gathered_;
};

}  // namespace vfm::io
