// Reads shards: tars of vfm by index (one positioned read for each sample), other tars by scanning.
//
// StreamReader reads in one pass any tar that libarchive reads (PAX, GNU names, zstd, gzip), also
// with NeMo's names "KEY..ext". IndexedReader has random access to a tar with X.tar.idx beside it,
// plain or in frames of zstd (shard/tar_file.h). Both ignore members of no sample (directories,
// links, "__meta__" names, names without a dot), return the samples before damage, and skip samples
// beyond ReadLimits without reading them. Samples of an object (io/remote/address.h) that are read
// in order come by read-ahead. A tar with gzip is copied first. Thread-safety: a StreamReader from
// one thread; read() and view() of an IndexedReader from any thread.
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
#include "io/zstd_reader.h"
#include "shard/sample.h"
#include "shard/writer.h"

namespace vfm::shard {

/// Opens a tar. Throws Error for a pipe, a device or a folder.
io::File open_tar(const std::string& path);

struct ReadLimits {
  std::uint64_t member = kMaxMember - 1;         ///< Limit for the bytes of a sample's members.
  static constexpr std::size_t kMembers = 4096;  ///< Limit for the number of members of a sample.
  std::uint64_t unpacked = io::kMostUnpacked;    ///< Unpacked bytes of every tar.
  static constexpr std::uint64_t kRatio = io::kUnpackedEach;  ///< More for each compressed byte.
};

struct Refused {
  std::string key;  ///< Key of the sample, or empty if unknown.
  std::string why;  ///< Message that names the member and the tar.
  Cause cause = Cause::format;
};

class StreamReader {
 public:
  explicit StreamReader(const std::string& path, const ReadLimits& limits = {});
  /// Reads an archive in memory, which must outlive the reader. Errors name the archive `name`.
  StreamReader(std::string_view archive, const std::string& name, const ReadLimits& limits = {});
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  /// Sets `sample` to the next members, as long as their key is the same (split_member_name()). A
  /// second member with the same extension begins a new sample. Skips samples that are too large,
  /// have too many members, or have a sparse member. refused() lists the skipped samples. Returns
  /// false at the end. Throws an Error that names the path if the archive is damaged or truncated,
  /// or unpacks to too many bytes. Samples before an Error are whole.
  bool next(Sample& sample);
  const std::vector<Refused>& refused() const;
  /// Returns whether samples can only be read in order (a compressed tar, or a list of files).
  bool compressed() const;
  /// Returns the offset of each member's data in the unpacked tar, for the sample set by next().
  const std::vector<std::uint64_t>& begins() const;

 private:
  friend struct TarOffsets;
  struct State;
  std::unique_ptr<State> state_;
};

/// The memory of one sample for IndexedReader::view(), for one thread.
class ReadBuffer {
 public:
  const SampleView& sample() const { return view_; }

 private:
  friend class IndexedReader;
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  Sample owned_;  // for samples that libarchive reads
  SampleView view_;
};

/// The offsets of the samples of an uncompressed tar.
struct TarOffsets {
  std::vector<std::uint64_t> at;  ///< Offset of each sample, then end of the last whole sample.
  std::string damage;             ///< Reason why the offsets end early, or empty for a whole tar.

  /// Reads headers. `name` is for messages. Throws Error if the tar is compressed or empty.
  static TarOffsets scan(const std::string& path, const std::string& name);
};

class IndexedReader {
 public:
  /// Opens a tar and its index. Throws Error if the index is missing or does not fit the tar.
  /// without_index() is for view_at() and view_in() only.
  explicit IndexedReader(const std::string& path, const ReadLimits& limits = {});
  IndexedReader(const std::string& path, TarOffsets index, const ReadLimits& limits = {});
  static IndexedReader without_index(const std::string& path, const ReadLimits& limits = {});
  ~IndexedReader();
  IndexedReader(IndexedReader&&) noexcept;

  const std::string& path() const;
  std::int64_t samples() const;
  /// Returns sample `i`, 0 <= i < samples(). Throws Error if the bytes are not exactly one sample
  /// (a damaged tar, a damaged or foreign index), or exceed ReadLimits.
  Sample read(std::int64_t i) const;
  /// Returns sample `i` without copies, as a view into `buffer`, valid until the buffer's next use.
  const SampleView& view(std::int64_t i, ReadBuffer& buffer) const;
  /// Returns the sample of `size` bytes at `offset`, like view(). Errors name sample `i`. For
  /// view_in(), its bytes were read before, and live as long as the view.
  const SampleView& view_at(std::int64_t i, std::uint64_t offset, std::uint64_t size,
                            ReadBuffer& buffer) const;
  const SampleView& view_in(std::int64_t i, std::uint64_t offset, std::string_view range,
                            ReadBuffer& buffer) const;
  const io::RemoteFile* remote() const;  ///< The object read, or null if local or compressed.
  /// Read a sample in pieces, on any threads. read_piece() returns bytes [begin, end) of the
  /// size(i) bytes of sample `i`. put_together() makes the sample from `range`, the joined pieces.
  /// Both functions throw what read() throws.
  std::string read_piece(std::int64_t i, std::uint64_t begin, std::uint64_t end) const;
  Sample put_together(std::int64_t i, std::string_view range) const;
  /// Returns the key of sample `i` from its first header, or "" if the header has no key.
  std::string key(std::int64_t i) const;
  std::uint64_t offset(std::int64_t i) const;  ///< The sample's place in the tar.
  std::uint64_t size(std::int64_t i) const;    ///< Its bytes, with headers and padding.
  const TarOffsets& index() const;

 private:
  struct State;
  explicit IndexedReader(std::unique_ptr<State> state);
  std::uint64_t range_of(std::int64_t i) const;
  void parse(std::int64_t i, std::uint64_t at, std::string_view range, ReadBuffer& buffer) const;
  void load(std::int64_t i, std::uint64_t offset, std::uint64_t size, std::size_t more,
            ReadBuffer& buffer) const;
  void check_bounds(std::int64_t i, const SampleView& sample, const char* behind) const;
  std::unique_ptr<State> state_;
};

struct Unpacked {
  bool compressed = false;  ///< Whether the tar is compressed. If not, unpack() writes nothing.
  std::string damage;       ///< Reason why unpacking ended early, or empty.
  Cause cause = Cause::format;
  std::vector<Refused> refused;  ///< Samples skipped because they are too large.
};
/// Writes the whole samples of a compressed tar to the tar `out`, atomically. Throws Error if none
/// is whole.
Unpacked unpack(const std::string& path, const std::string& out, const ReadLimits& limits);

/// Calls `use` with every sample of a tar. Uses the index beside the tar if it fits.
void for_each_sample(const std::string& path, const std::function<void(Sample&)>& use);

}  // namespace vfm::shard
