// Reading shards: our own by index (one positioned read a sample), anyone's by scanning.
//
// StreamReader: any tar that libarchive reads (PAX, GNU names, zstd, gzip; NeMo's "KEY..ext"
// names), one pass. IndexedReader: an uncompressed tar with X.tar.idx beside it, random access.
// Members that belong to no sample (directories, links, "__meta__" names, names without a dot) are
// passed over, as every WebDataset reader does.
// Damage: the whole samples before it are given, not the one in which a tar breaks off.
// Memory: a sample; what is larger than ReadLimits is refused before it is taken into memory.
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

/// Opens a tar: a regular file. Throws Error for a URL, a pipe, a device, a folder.
io::File open_tar(const std::string& path);

/// What a reader takes into memory.
struct ReadLimits {
  std::uint64_t member = kMaxMember - 1;  ///< most bytes of a member, and of a sample's together
  static constexpr std::size_t kMembers = 4096;     ///< most members of a sample
  std::uint64_t unpacked = std::uint64_t{4} << 30;  ///< most bytes of a compressed tar, unpacked,
  static constexpr std::uint64_t kRatio = 200;  ///< beside so many times its own (text: 20 to 50)
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
  /// path: what came before it is whole. Samples that are too large by their headers, or while they
  /// are unpacked, have too many members, or sparse ones, are passed over: refused().
  bool next(Sample& sample);
  const std::vector<Refused>& refused() const;
  /// Whether its samples can only be read in order: a compressed tar, or a list of files.
  bool compressed() const;
  /// Where the data of the last sample's members begin, in the tar or in what that unpacks to.
  const std::vector<std::uint64_t>& begins() const;

 private:
  friend struct TarOffsets;
  struct State;
  std::unique_ptr<State> state_;
};

/// Where IndexedReader::view puts the bytes of a sample. Reuse it for the next sample: nothing is
/// allocated then. One a thread.
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

/// Where the samples of an uncompressed tar are.
struct TarOffsets {
  std::vector<std::uint64_t> at;  ///< of each sample, and of what follows the last whole one
  std::string damage;             ///< why the tar ends there; empty: it is whole

  /// Walks over the headers of a tar; `name` stands in messages. Throws Error where no sample is
  /// whole, and on a compressed tar, whose samples can only be read in order.
  static TarOffsets scan(const std::string& path, const std::string& name);
};

class IndexedReader {
 public:
  /// Throws Error if there is no index or it does not fit the tar.
  explicit IndexedReader(const std::string& path, const ReadLimits& limits = {});
  /// With an index that the caller has.
  IndexedReader(const std::string& path, TarOffsets index, const ReadLimits& limits = {});
  /// For view_at() alone.
  static IndexedReader without_index(const std::string& path, const ReadLimits& limits = {});
  ~IndexedReader();
  IndexedReader(IndexedReader&&) noexcept;

  const std::string& path() const;
  std::int64_t samples() const;
  /// Sample `i`, 0 <= i < samples(), in one positioned read. Throws Error if the bytes there are no
  /// sample or not all of one (a damaged tar, a damaged index or another one's), or too many.
  Sample read(std::int64_t i) const;
  /// The same without copies: the view is into `buffer`, and valid until its next use.
  const SampleView& view(std::int64_t i, ReadBuffer& buffer) const;
  /// The same where the caller knows that it begins at `offset` and takes `size` bytes.
  const SampleView& view_at(std::int64_t i, std::uint64_t offset, std::uint64_t size,
                            ReadBuffer& buffer) const;
  /// In pieces, which several may read: of the size() bytes that sample `i` takes those of
  /// [begin, end); and the sample that all of them together are. Throw Error as read().
  std::string read_piece(std::int64_t i, std::uint64_t begin, std::uint64_t end) const;
  Sample put_together(std::int64_t i, std::string_view range) const;
  /// Of sample `i`, by its first header alone; empty if that has none.
  std::string key(std::int64_t i) const;
  /// Where sample `i` begins in the tar, and how many bytes it takes with headers and padding.
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

/// What unpack() did.
struct Unpacked {
  bool compressed = false;       ///< else nothing was written
  std::string damage;            ///< why not all of it could be unpacked
  Cause cause = Cause::format;   ///< of damage
  std::vector<Refused> refused;  ///< samples that are too large
};
/// Writes the whole samples of a compressed tar to `out`, atomically, with plain names. Throws
/// Error where there is none.
Unpacked unpack(const std::string& path, const std::string& out, const ReadLimits& limits);

/// Every sample of the tar at `path`, by index where a fitting one is beside it, else by scanning.
/// Throws Error as the readers do, and whatever `use` throws.
void for_each_sample(const std::string& path, const std::function<void(Sample&)>& use);

}  // namespace vfm::shard
