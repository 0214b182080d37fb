// Reads and writes the safetensors format of Hugging Face's libraries: named tensors in one file.
//
//   8 bytes   length N of the header, little endian, at most 100,000,000
//   N bytes   JSON: {"name": {"dtype":"F32","shape":[2,3],"data_offsets":[begin,end]}, ...};
//             offsets count from the end of the header; "__metadata__" maps strings to strings
//   the data  without holes or overlaps, to the end of the file
//
// A set is one file NAME.safetensors. A larger set is several files NAME-00001-of-0000N.safetensors
// and an index NAME.safetensors.index.json, as in diffusers and transformers. Source:
// github.com/huggingface/safetensors, README, "Format", and the errors of its Rust reader.
// Thread-safety: parse and const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/lazy_map.h"
#include "io/tensor_set.h"

namespace vfm::io {

struct SafetensorsContents {
  std::vector<TensorView> tensors;  ///< Tensors in the order of their data in the file.
  std::map<std::string, std::string> metadata;
};

/// Parses a whole file. The tensors are views of `bytes`. Throws Error, which names `what`, for
/// anything that the format forbids: a header that is too long or not JSON, a repeated name, an
/// unknown dtype, a size that does not fit the shape, a gap, an overlap, or missing or extra data.
/// The bytes may be hostile. Pure; fuzzed.
SafetensorsContents parse_safetensors(std::span<const std::byte> bytes, std::string_view what);

/// The memory-mapped tensors of one file, or of all files of an index. Of objects without a cache
/// (io/file_cache.h) only the bytes that are needed are fetched: call need_bytes() of io/lazy_map.h
/// before a read of `data`.
class SafetensorsSet : public TensorSet {
 public:
  /// Opens `folder`/`name`.safetensors or `folder`/`name`.safetensors.index.json. Throws Error if
  /// neither exists, if a file of the index is missing, if two files have a tensor of the same
  /// name, or if a tensor of the index is missing.
  SafetensorsSet(const std::string& folder, const std::string& name);
  /// Opens `file`, which is a .safetensors file or an index (.json).
  explicit SafetensorsSet(const std::string& file);

  /// Returns the file that the first constructor opens. The file need not exist.
  static std::string file_of(const std::string& folder, const std::string& name);

  /// Returns the metadata of all headers.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  static bool exists(const std::string& folder, const std::string& name);

  void release(const TensorView& tensor) const override;

 private:
  std::vector<MappedFile> maps_;
  std::vector<std::unique_ptr<LazyMap>> lazy_maps_;
  std::map<std::string, std::string> metadata_;
};

/// One file of a set to be written, with its tensors.
struct SafetensorsFile {
  std::string name;  ///< Name such as "m.safetensors" or "m-00001-of-00002.safetensors".
  std::vector<TensorView> tensors;  ///< Tensors in the order of their data. `data` may be empty.

  std::uint64_t bytes() const;  ///< Size of the tensors' data in bytes.
};

/// A distribution of tensors over files, which depends only on names, shapes, types and the limit.
struct SafetensorsPlan {
  std::vector<SafetensorsFile> files;
  std::string index_name, index;  ///< Name and content of the index. Empty for a single file.
};

/// Distributes tensors over files. Tensors are sorted by descending item size, then by name, as in
/// the reference writer. A file has at most `max_file_bytes` of tensors. A larger tensor gets a
/// file of its own.
SafetensorsPlan plan_safetensors(const std::string& name, std::vector<TensorView> tensors,
                                 std::uint64_t max_file_bytes);

/// Returns the bytes of a file before its data, which begin at a multiple of 64. The metadata are
/// {"format":"pt"} and `metadata`.
std::string safetensors_header(const SafetensorsFile& file,
                               const std::map<std::string, std::string>& metadata = {});

/// Writes one file in pieces, atomically, with safetensors_header(). If the object is destroyed
/// before finish(), no file remains.
/// Thread-safety: one thread at a time.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& folder, const SafetensorsFile& file,
                    const std::map<std::string, std::string>& metadata = {});
  /// Writes the next bytes of the tensors' data, in the order of the tensors.
  void write(std::span<const std::byte> bytes);
  /// Completes the file, and returns hash_file() of the file. Throws Error if bytes of the tensors
  /// are missing.
  std::string finish();

 private:
  AtomicFile out_;
  Hasher hasher_;
  std::uint64_t left_;  // Bytes of data to come.
};

/// The highest number of bytes in a piece of a tensor. Pieces do not divide elements.
inline constexpr std::uint64_t kMostOfPiece = std::uint64_t{16} << 20;
/// A function of a tensor, `begin` and `end` that returns the bytes [begin, end) of the tensor. The
/// bytes are valid until the next call.
using FetchPiece =
    std::function<std::span<const std::byte>(const TensorView&, std::uint64_t, std::uint64_t)>;

/// Writes one file, and returns its hash. If `fetch` is given, fetches each tensor in pieces of at
/// most kMostOfPiece bytes, in order. Otherwise writes the tensors' `data`.
std::string write_safetensors_file(const std::string& folder, const SafetensorsFile& file,
                                   const FetchPiece& fetch = {},
                                   const std::map<std::string, std::string>& metadata = {});

/// Plans the set `name`, and writes its files and its index into `folder`. Returns the names of the
/// files.
std::vector<std::string> write_safetensors(const std::string& folder, const std::string& name,
                                           std::vector<TensorView> tensors,
                                           std::uint64_t max_file_bytes = std::uint64_t{5} << 30,
                                           const FetchPiece& fetch = {},
                                           const std::map<std::string, std::string>& metadata = {});

}  // namespace vfm::io
