// Reads shards: tars of vfm by index (one positioned read for each sample), other tars by scanning.
//
// StreamReader reads any tar that libarchive reads (PAX, GNU names, zstd, gzip; NeMo's "KEY..ext"
// names), in one pass. IndexedReader has random access to an uncompressed tar with X.tar.idx beside
// it. Members that belong to no sample (directories, links, "__meta__" names, names without a dot)
// are ignored, as in every WebDataset reader. Samples before damage in a tar are returned. One
// sample is in memory at a time; samples beyond ReadLimits are refused before they are in memory.
// Thread-safety: StreamReader one thread; IndexedReader::read and view from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/file.h"
#include "shard/sample.h"
#include "shard/writer.h"

namespace vfm::shard {

/// Opens a tar. Throws Error for a URL, a pipe, a device, a folder.
io::File open_tar(const std::string& path);

/// Limits on a reader's memory.
struct ReadLimits {
  std::uint64_t member = kMaxMember - 1;            ///< most bytes of a sample's members together
  static constexpr std::size_t kMembers = 4096;     ///< most members of a sample
  std::uint64_t unpacked = std::uint64_t{4} << 30;  ///< most bytes of a compressed tar, unpacked,
  static constexpr std::uint64_t kRatio = 200;      ///< plus this many times its size (text: 20-50)
};

/// A sample that was skipped.
struct Refused {
  std::string key;  ///< empty if unknown
  std::string why;  ///< names member and tar
  Cause cause = Cause::format;
};

class StreamReader {
 public:
  explicit StreamReader(const std::string& path, const ReadLimits& limits = {});
  /// Reads an archive in memory, which must outlive the reader; `name` is for messages.
  StreamReader(std::string_view archive, const std::string& name, const ReadLimits& limits = {});
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  /// Sets `sample` to the next consecutive members with one key. A member's name is split at the
  /// first dot of its base name, and the extension is lower-cased. A second member of one extension
  /// begins the next sample. Returns false at the end. Throws Error, naming the path, if the
  /// archive is damaged, truncated, or unpacks to too much; earlier samples are whole. Samples that
  /// are too large, or have too many or sparse members, are skipped; refused() lists them.
  bool next(Sample& sample);
  const std::vector<Refused>& refused() const;
  /// Returns whether samples can only be read in order: a compressed tar, or a list.
  bool compressed() const;
  /// Returns the offsets, in the unpacked tar, of the data of the last sample's members.
  const std::vector<std::uint64_t>& begins() const;

 private:
  friend struct TarOffsets;
  struct State;
  std::unique_ptr<State> state_;
};

/// The memory of one sample for IndexedReader::view. Reuse it for the next sample, to save
/// allocations. Each thread needs its own.
class ReadBuffer {
 public:
  const SampleView& sample() const { return view_; }

 private:
  friend class IndexedReader;
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  Sample owned_;  // for samples that libarchive has to read
  SampleView view_;
};

/// The offsets of the samples of an uncompressed tar.
struct TarOffsets {
  std::vector<std::uint64_t> at;  ///< of each sample, and of the end of the last whole sample
  std::string damage;             ///< why the tar ends there; empty: the tar is whole

  /// Reads the headers of a tar; `name` is for messages. Throws Error if no sample is whole, and
  /// for a compressed tar, whose samples can only be read in order.
  static TarOffsets scan(const std::string& path, const std::string& name);
};

class IndexedReader {
 public:
  /// Throws Error without an index, or if it does not fit the tar.
  explicit IndexedReader(const std::string& path, const ReadLimits& limits = {});
  /// Uses the caller's index.
  IndexedReader(const std::string& path, TarOffsets index, const ReadLimits& limits = {});
  /// Returns a reader for view_at() only.
  static IndexedReader without_index(const std::string& path, const ReadLimits& limits = {});
  ~IndexedReader();
  IndexedReader(IndexedReader&&) noexcept;

  const std::string& path() const;
  std::int64_t samples() const;
  /// Returns sample `i`, 0 <= i < samples(), in one positioned read. Throws Error if the bytes are
  /// not exactly one sample (a damaged tar, a damaged or foreign index), or exceed ReadLimits.
  Sample read(std::int64_t i) const;
  /// Reads without copies. Returns a view into `buffer`, valid until the buffer's next use.
  const SampleView& view(std::int64_t i, ReadBuffer& buffer) const;
  /// Does what view() does, for a sample at a known `offset` with `size` bytes.
  const SampleView& view_at(std::int64_t i, std::uint64_t offset, std::uint64_t size,
                            ReadBuffer& buffer) const;
  /// Read a sample in pieces, which several threads may do. read_piece() returns bytes [begin, end)
  /// of the size(i) bytes of sample `i`. put_together() makes the sample of all pieces. Both throw
  /// read()'s Errors.
  std::string read_piece(std::int64_t i, std::uint64_t begin, std::uint64_t end) const;
  Sample put_together(std::int64_t i, std::string_view range) const;
  /// Returns the key of sample `i` from its first header, or "" if this header has no key.
  std::string key(std::int64_t i) const;
  /// Return the sample's offset in the tar, and its bytes with headers and padding.
  std::uint64_t offset(std::int64_t i) const;
  std::uint64_t size(std::int64_t i) const;
  const TarOffsets& index() const;

 private:
  struct State;
  explicit IndexedReader(std::unique_ptr<State> state);
  std::uint64_t range_of(std::int64_t i) const;
  void parse(std::int64_t i, std::uint64_t at, std::string_view range, ReadBuffer& buffer) const;
  void check_bounds(std::int64_t i, const SampleView& sample) const;
  std::unique_ptr<State> state_;
};

/// The result of unpack().
struct Unpacked {
  bool compressed = false;       ///< false: nothing was written
  std::string damage;            ///< why unpacking ended early; empty: all is unpacked
  Cause cause = Cause::format;   ///< of damage
  std::vector<Refused> refused;  ///< samples that are too large
};
/// Writes the whole samples of a compressed tar to `out`, atomically, with plain names. Throws
/// Error if no sample is whole.
Unpacked unpack(const std::string& path, const std::string& out, const ReadLimits& limits);

/// Calls `use` with every sample of the tar at `path`. Reads by the index beside the tar if the
/// index fits; otherwise scans the tar. Throws the readers' Errors, and what `use` throws.
void for_each_sample(const std::string& path, const std::function<void(Sample&)>& use);

}  // namespace vfm::shard
