// Reading shards: our own by index (one positioned read a sample), anyone's by scanning.
//
// StreamReader: any tar that libarchive reads (PAX, GNU names, zstd, gzip; NeMo's "KEY..ext"
// names), one pass. IndexedReader: an uncompressed tar with X.tar.idx beside it, random access.
// Members that belong to no sample (directories, links, "__meta__" names, names without a dot) are
// passed over, as every WebDataset reader does.
// Thread-safety: StreamReader one thread; IndexedReader::read and view from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shard/sample.h"

namespace vfm::shard {

class StreamReader {
 public:
  explicit StreamReader(const std::string& path);
  /// Reads an archive in memory, which must live as long as the reader; `name` stands in messages.
  StreamReader(std::string_view archive, const std::string& name);
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  /// The next sample: consecutive members with one key, lower-cased extensions, split at the first
  /// dot of the base name; a second member of one extension begins the next sample. False at the
  /// end. Throws Error on a damaged or truncated archive, naming the path: what came before it is
  /// whole.
  bool next(Sample& sample);

 private:
  friend std::vector<std::uint64_t> scan_offsets(const std::string& path);
  struct State;
  std::unique_ptr<State> state_;
};

/// Where IndexedReader::view puts the bytes of a sample. Use one again for the next sample: nothing
/// is allocated then. One a thread.
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

class IndexedReader {
 public:
  /// Throws Error if there is no index or it does not fit the tar.
  explicit IndexedReader(const std::string& path);
  /// With an index that the caller has, from offsets() or scan_offsets().
  IndexedReader(const std::string& path, std::vector<std::uint64_t> offsets);
  ~IndexedReader();
  IndexedReader(IndexedReader&&) noexcept;

  const std::string& path() const;
  std::int64_t samples() const;
  /// Sample `i`, 0 <= i < samples(), in one positioned read. Throws Error if the bytes there are no
  /// sample (a damaged tar, or the index of another one).
  Sample read(std::int64_t i) const;
  /// The same without copies: the view is into `buffer`, and valid until its next use.
  const SampleView& view(std::int64_t i, ReadBuffer& buffer) const;
  /// Where sample `i` begins in the tar, and how many bytes it takes with headers and padding.
  std::uint64_t offset(std::int64_t i) const;
  std::uint64_t size(std::int64_t i) const;
  /// The index: the offset of each sample, and that of the end blocks.
  const std::vector<std::uint64_t>& offsets() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The index of a tar that has none, found by walking over its headers. Throws Error on a damaged
/// archive, and on a compressed one, whose samples can only be read in order.
std::vector<std::uint64_t> scan_offsets(const std::string& path);

/// Writes what is in the compressed tar at `path` to `out`, atomically. False, and nothing written,
/// if it is not compressed. Throws Error.
bool unpack(const std::string& path, const std::string& out);

/// Every sample of the tar at `path`, by index where a fitting one is beside it, else by scanning.
/// Throws Error as the readers do, and whatever `use` throws.
void for_each_sample(const std::string& path, const std::function<void(Sample&)>& use);

}  // namespace vfm::shard
