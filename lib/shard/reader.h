// Reading shards: our own by index (one positioned read a sample), anyone's by scanning.
//
// StreamReader: any tar that libarchive reads (PAX, GNU names, zstd, gzip; NeMo's "KEY..ext"
// names), one pass. IndexedReader: an uncompressed tar with X.tar.idx beside it, random access.
// Members that belong to no sample (directories, links, "__meta__" names, names without a dot) are
// ignored, as in every WebDataset reader.
// Damage: the whole samples before it are given. Memory: a sample; larger ones than ReadLimits
// allow are refused before they are read into memory. Thread-safety: StreamReader one thread;
// IndexedReader::read and view from any thread.
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

/// Opens a tar: a regular file. Throws Error for a URL, a pipe, a device, a folder.
io::File open_tar(const std::string& path);

/// Limits on a reader's memory.
struct ReadLimits {
  std::uint64_t member = kMaxMember - 1;  ///< most bytes of a member, and of a sample's together
  static constexpr std::size_t kMembers = 4096;     ///< most members of a sample
  std::uint64_t unpacked = std::uint64_t{4} << 30;  ///< most bytes of a compressed tar, unpacked,
  static constexpr std::uint64_t kRatio = 200;  ///< beside this many times its size (text: 20-50)
};

/// A sample that was skipped.
struct Refused {
  std::string key;  ///< empty, if it is not known
  std::string why;  ///< naming member and tar
  Cause cause = Cause::format;
};

class StreamReader {
 public:
  explicit StreamReader(const std::string& path, const ReadLimits& limits = {});
  /// Reads an archive in memory, which must live as long as the reader; `name` stands in messages.
  StreamReader(std::string_view archive, const std::string& name, const ReadLimits& limits = {});
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  /// The next sample: consecutive members with one key, lower-cased extensions, split at the first
  /// dot of the base name; a second member of one extension begins the next sample. False at the
  /// end. Throws Error on an archive that is damaged, truncated, or unpacks to too much, naming the
  /// path: earlier samples are whole. Samples that are too large, by headers or while unpacked, or
  /// have too many or sparse members, are skipped: refused().
  bool next(Sample& sample);
  const std::vector<Refused>& refused() const;
  /// Whether its samples can only be read in order: a compressed tar, or a list of files.
  bool compressed() const;
  /// The begins of the data of the last sample's members, in the unpacked tar.
  const std::vector<std::uint64_t>& begins() const;

 private:
  friend struct TarOffsets;
  struct State;
  std::unique_ptr<State> state_;
};

/// The memory of a sample for IndexedReader::view. Reuse it for the next sample, to save
/// allocations. One for each thread.
class ReadBuffer {
 public:
  const SampleView& sample() const { return view_; }

 private:
  friend class IndexedReader;
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  Sample owned_;  // where the slow way, through libarchive, leaves a sample
  SampleView view_;
};

/// The places of the samples of an uncompressed tar.
struct TarOffsets {
  std::vector<std::uint64_t> at;  ///< of each sample, and of the end of the last whole one
  std::string damage;             ///< why the tar ends there; empty: it is whole

  /// Walks over the headers of a tar; `name` stands in messages. Throws Error if no sample is
  /// whole, and for a compressed tar, whose samples can only be read in order.
  static TarOffsets scan(const std::string& path, const std::string& name);
};

class IndexedReader {
 public:
  /// Throws Error without an index, or if it does not fit the tar.
  explicit IndexedReader(const std::string& path, const ReadLimits& limits = {});
  /// With an index that the caller has.
  IndexedReader(const std::string& path, TarOffsets index, const ReadLimits& limits = {});
  /// For view_at() only.
  static IndexedReader without_index(const std::string& path, const ReadLimits& limits = {});
  ~IndexedReader();
  IndexedReader(IndexedReader&&) noexcept;

  const std::string& path() const;
  std::int64_t samples() const;
  /// Sample `i`, 0 <= i < samples(), in one positioned read. Throws Error if the bytes there are
  /// not exactly one sample (a damaged tar, a damaged or foreign index), or too many.
  Sample read(std::int64_t i) const;
  /// The same without copies: the view is into `buffer`, and valid until its next use.
  const SampleView& view(std::int64_t i, ReadBuffer& buffer) const;
  /// The same if the caller knows that it begins at `offset` and has `size` bytes.
  const SampleView& view_at(std::int64_t i, std::uint64_t offset, std::uint64_t size,
                            ReadBuffer& buffer) const;
  /// Read a sample in pieces, which several threads may read: bytes [begin, end) of the size()
  /// bytes of sample `i`; and the sample from all pieces together. Throw the Errors of read().
  std::string read_piece(std::int64_t i, std::uint64_t begin, std::uint64_t end) const;
  Sample put_together(std::int64_t i, std::string_view range) const;
  /// The key of sample `i`, from its first header only; empty if that has none.
  std::string key(std::int64_t i) const;
  /// The begin of sample `i` in the tar, and its bytes with headers and padding.
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
  bool compressed = false;       ///< else nothing was written
  std::string damage;            ///< why not all of it could be unpacked
  Cause cause = Cause::format;   ///< of damage
  std::vector<Refused> refused;  ///< samples that are too large
};
/// Writes the whole samples of a compressed tar to `out`, atomically, with plain names. Throws
/// Error where there is none.
Unpacked unpack(const std::string& path, const std::string& out, const ReadLimits& limits);

/// Calls `use` with every sample of the tar at `path`, by a fitting index beside it, else by
/// scanning. Throws the readers' Errors, and what `use` throws.
void for_each_sample(const std::string& path, const std::function<void(Sample&)>& use);

}  // namespace vfm::shard
