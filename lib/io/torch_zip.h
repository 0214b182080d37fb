// PyTorch's checkpoints (.pt, .pth, .bin since PyTorch 1.6, and scripted modules, .jit): a zip
// archive with a pickle, which names and places the tensors, and one member for each storage.
//
//   NAME/data.pkl      io/pickle.h
//   NAME/data/3        the numbers of storage "3"
//   NAME/byteorder     "little", or absent
//
// No code is ever run. Writing, and files older than 1.6, are not supported (the error says what to
// do). Source: PyTorch torch/serialization.py; caffe2/serialize/inline_container.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/tensor_set.h"

namespace vfm::io {

struct TorchContents {
  std::vector<TensorView> tensors;  ///< their data lie in the file, or in `gathered`
  std::vector<std::unique_ptr<std::byte[]>> gathered;  ///< of tensors that were not contiguous
};

/// Parses a whole file. Throws Error, naming `what`, on anything that does not fit: a tensor beyond
/// its storage, a storage of another size than its member, an expanded tensor (which would be
/// larger than what is stored). Hostile input gives an Error, never a crash, and takes memory of at
/// most a few times its size. Pure; fuzzed.
TorchContents parse_torch_zip(std::span<const std::byte> bytes, std::string_view what);

/// The tensors of such a file, or of the shards of an index (io/weight_index.h), mapped.
class TorchZip : public TensorSet {
 public:
  /// `file` is an index if its name ends with ".json". Throws Error: no such file, not such a file,
  /// what parse_torch_zip() refuses, or a shard that lacks what the index says.
  explicit TorchZip(const std::string& file);

 private:
  std::vector<MappedFile> maps_;
  std::vector<std::unique_ptr<std::byte[]>> gathered_;
};

}  // namespace vfm::io
