// Writes one shard and its indexes in one pass (vfm-shard(5)): a POSIX ustar tar that webdataset,
// wids, Energon, DALI, Hugging Face datasets and Python's tarfile all read.
//
// Call add() for each sample, then finish() or abandon(); the destructor abandons.
// shard/dataset_meta.h writes the files of a whole dataset. Memory: 1 MiB, and about 100 bytes a
// sample for the indexes.
// Thread-safety: one thread at a time; several Writers may work on several threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/json_fwd.h"
#include "shard/sample.h"

namespace vfm::shard {

/// A tar consists of blocks of this many bytes.
inline constexpr std::size_t kTarBlock = 512;

struct WriterOptions {
  bool energon_index = true;  ///< X.tar.idx
  bool dali_index = true;     ///< X.idx
};

/// Bytes of the longest name of a member, KEY.EXTENSION, and one more than the bytes of the largest
/// member: DALI's libtar stores sizes in an int.
constexpr std::size_t kMaxName = 100;
constexpr std::uint64_t kMaxMember = std::uint64_t{1} << 31;

class Writer {
 public:
  /// `path` must end in ".tar", and its directory must exist. No file `path` appears before
  /// finish(). Throws Error.
  explicit Writer(const std::string& path, const WriterOptions& options = {});
  ~Writer();
  Writer(Writer&&) noexcept;

  /// Throws Error, and adds nothing, if the key is malformed or repeated in this shard, a member is
  /// 2 GiB or more, or the members' extensions differ from the first sample's. After an Error of
  /// the disk, abandon the shard.
  void add(const Sample& sample);
  void add(const SampleView& sample);

  const std::string& path() const;
  std::int64_t samples() const;
  std::uint64_t bytes() const;  ///< bytes written so far, without the end blocks
  /// Commits the indexes, then the tar; returns its manifest record {"kind":"shard","path":…,
  /// "samples":…,"bytes":…,"xxh3":…} (the XXH3-128 of the whole file, 32 hex digits). An earlier
  /// tar is removed first, so that an index is never beside a tar that it does not fit. Throws
  /// Error if there are no samples.
  Json finish();
  void abandon() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Throws Error if the Writer's rules for key, extensions, names and sizes forbid the sample.
void check_sample(const SampleView& sample);
/// Returns the bytes that a sample takes in a tar, with headers and padding.
std::uint64_t sample_bytes(const SampleView& sample);
/// Return the indexes of "a/b.tar": "a/b.tar.idx" (Energon) and "a/b.idx" (DALI; the name is cut at
/// its first dot).
std::string energon_index_path(const std::string& tar);
std::string dali_index_path(const std::string& tar);

}  // namespace vfm::shard
