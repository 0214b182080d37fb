// Reads and writes the safetensors format of Hugging Face's libraries: named tensors in one file.
//
//   8 bytes   length N of the header, little endian, at most 100,000,000
//   N bytes   JSON: {"name": {"dtype":"F32","shape":[2,3],"data_offsets":[begin,end]}, ...};
//             offsets count from the end of the header; "__metadata__" maps strings to strings
//   the data  without holes or overlaps, to the end of the file
//
// A set is one file NAME.safetensors, or, above a size, several files
// NAME-00001-of-0000N.safetensors and NAME.safetensors.index.json, as in diffusers and
// transformers. Numbers are little-endian.
// Source: github.com/huggingface/safetensors: README, "Format"; the Rust reader for what is
// refused.
// Thread-safety: parse and const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/tensor_set.h"

namespace vfm::io {

struct SafetensorsContents {
  std::vector<TensorView> tensors;  ///< in the order of their data in the file
  std::map<std::string, std::string> metadata;
};

/// Parses a whole file. The views point into `bytes`. Throws Error, which names `what`, on anything
/// that the format forbids: a header too long or not JSON, a name twice, an unknown dtype, a size
/// that does not fit the shape, a hole, an overlap, data missing or left over. Hostile input gives
/// an Error, never a crash. Pure; fuzzed.
SafetensorsContents parse_safetensors(std::span<const std::byte> bytes, std::string_view what);

/// A set of tensors on disk, mapped: one file, or an index and all its files.
class SafetensorsSet : public TensorSet {
 public:
  /// Opens `folder`/`name`.safetensors or `folder`/`name`.safetensors.index.json. Throws Error if
  /// neither exists, a file of the index is missing, a name is in two files, or the index names a
  /// missing tensor.
  SafetensorsSet(const std::string& folder, const std::string& name);
  /// Opens `file`, a .safetensors file or an index (.json), of any name.
  explicit SafetensorsSet(const std::string& file);

  /// Returns the file that the first constructor opens, also if the file does not exist.
  static std::string file_of(const std::string& folder, const std::string& name);

  /// Returns the metadata of all headers.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// Returns whether the set `name` exists in `folder`.
  static bool exists(const std::string& folder, const std::string& name);

  void release(const TensorView& tensor) const override;

 private:
  std::vector<MappedFile> maps_;
  std::map<std::string, std::string> metadata_;
};

/// One file of a set to be written, and its tensors.
struct SafetensorsFile {
  std::string name;                 ///< "m.safetensors", "m-00001-of-00002.safetensors"
  std::vector<TensorView> tensors;  ///< in the order of their data; `data` may be empty

  std::uint64_t bytes() const;  ///< bytes of the tensors' data
};

/// The distribution of tensors over files. The distribution depends only on names, shapes, types
/// and the limit.
struct SafetensorsPlan {
  std::vector<SafetensorsFile> files;
  std::string index_name, index;  ///< name and content; "" for a single file
};

/// Distributes tensors over files. They are ordered by descending item size, then by name, as in
/// the reference writer. A file has at most `max_file_bytes` of tensors; a larger tensor has its
/// own file.
SafetensorsPlan plan_safetensors(const std::string& name, std::vector<TensorView> tensors,
                                 std::uint64_t max_file_bytes);

/// Writes one file piece by piece, atomically. The data begin at a multiple of 64. The metadata is
/// {"format":"pt"}, which other readers require, and `metadata`. If the object is destroyed
/// unfinished, no file remains. Thread-safety: one thread at a time.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& folder, const SafetensorsFile& file,
                    const std::map<std::string, std::string>& metadata = {});
  /// Writes the next bytes of the tensors' data, in their order.
  void write(std::span<const std::byte> bytes);
  /// Completes the file, and returns the hash that hash_file() would return, without reading the
  /// file again. Throws Error if bytes of the tensors are missing.
  std::string finish();

 private:
  AtomicFile out_;
  Hasher hasher_;
  std::uint64_t left_;  // bytes of data to come
};

/// Most bytes of a tensor that are in memory at once; a piece has whole elements.
inline constexpr std::uint64_t kMostOfPiece = std::uint64_t{16} << 20;
/// Returns the bytes [begin, end) of a tensor, valid until the next call.
using FetchPiece =
    std::function<std::span<const std::byte>(const TensorView&, std::uint64_t, std::uint64_t)>;

/// Writes one whole file; returns its hash. Without `fetch` the bytes are the tensors' `data`. If
/// `fetch` is given, it is called for each tensor in order, in pieces of kMostOfPiece, so that the
/// set need not be in memory.
std::string write_safetensors_file(const std::string& folder, const SafetensorsFile& file,
                                   const FetchPiece& fetch = {},
                                   const std::map<std::string, std::string>& metadata = {});

/// Plans the set `name`, and writes its files and its index into `folder`; returns their names.
std::vector<std::string> write_safetensors(const std::string& folder, const std::string& name,
                                           std::vector<TensorView> tensors,
                                           std::uint64_t max_file_bytes = std::uint64_t{5} << 30,
                                           const FetchPiece& fetch = {},
                                           const std::map<std::string, std::string>& metadata = {});

}  // namespace vfm::io
