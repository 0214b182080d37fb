// Writes one shard and its indexes in one pass (vfm-shard(5)): a POSIX ustar tar that webdataset,
// wids, Energon, DALI, Hugging Face datasets and Python's tarfile all read. X.tar.zst is the same
// tar compressed in frames (io/zstd_frames.h) that begin at samples, with the indexes of X.tar.
//
// Call add() for each sample, then finish() or abandon(). The destructor calls abandon(). Memory: 1
// MiB, 13 MiB more to compress, and about 100 bytes a sample for the indexes.
// Thread-safety: one thread at a time for each Writer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/json_fwd.h"
#include "shard/sample.h"

namespace vfm::shard {

/// Bytes of a block of a tar.
inline constexpr std::size_t kTarBlock = 512;

struct WriterOptions {
  bool energon_index = true;  ///< Whether to write X.tar.idx.
  bool dali_index = true;     ///< Whether to write X.idx.
};

/// Limits of a member. The name, KEY.EXTENSION, has at most kMaxName bytes. The data have fewer
/// than kMaxMember bytes, because DALI's libtar stores sizes in an int.
constexpr std::size_t kMaxName = 100;
constexpr std::uint64_t kMaxMember = std::uint64_t{1} << 31;

class Writer {
 public:
  /// Begins a shard. `path` must end in ".tar" or ".tar.zst", and its directory must exist. The
  /// file `path` appears only with finish(). Throws Error.
  explicit Writer(const std::string& path, const WriterOptions& options = {});
  ~Writer();
  Writer(Writer&&) noexcept;

  /// Adds a sample. Throws Error, and adds nothing, if the key is malformed or repeated, if a
  /// member has 2 GiB or more, or if the extensions differ from the first sample's. After an Error
  /// of the disk, call abandon().
  void add(const Sample& sample);
  void add(const SampleView& sample);

  const std::string& path() const;
  std::int64_t samples() const;
  std::uint64_t bytes() const;  ///< Bytes of the tar so far, not compressed, without end blocks.
  /// Removes an existing tar if its bytes differ, commits the indexes, and then the new tar.
  /// Returns the tar's manifest record {"kind":"shard","path":…,"samples":…,"bytes":…,"xxh3":…}
  /// (the XXH3-128 of the whole file, 32 hex digits). If the tar is compressed, "tar_bytes" is its
  /// size without compression. Throws Error if there are no samples.
  Json finish();
  void abandon() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns a view of a sample, which must outlive the view.
SampleView view_of(const Sample& sample);
/// Throws Error if the sample breaks the Writer's rules for keys, extensions, names or sizes.
void check_sample(const SampleView& sample);
/// Returns the bytes that a sample takes in a tar, with headers and padding.
std::uint64_t sample_bytes(const SampleView& sample);
/// Returns the name without ".zst", which a compressed tar has when it is unpacked.
std::string plain_tar_path(const std::string& tar);
/// Return the names of the indexes of "a/b.tar" and "a/b.tar.zst": "a/b.tar.idx" (Energon) and
/// "a/b.idx" (DALI, which cuts the name at the first dot).
std::string energon_index_path(const std::string& tar);
std::string dali_index_path(const std::string& tar);

}  // namespace vfm::shard
