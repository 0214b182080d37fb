// Reading shards: our own by index (one positioned read a sample), anyone's by scanning.
//
// StreamReader: any tar that libarchive reads (PAX, GNU names, zstd, gzip; NeMo's "KEY..ext" names),
// one pass. IndexedReader: an uncompressed tar with X.tar.idx beside it, random access.
// Thread-safety: StreamReader one thread; IndexedReader::read from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "shard/sample.h"

namespace vfm::shard {

class StreamReader {
 public:
  explicit StreamReader(const std::string& path);
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  /// The next sample: consecutive members with one key, lower-cased extensions, split at the first dot
  /// of the base name. False at the end. Throws Error on a damaged archive, naming the path.
  bool next(Sample& sample);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class IndexedReader {
 public:
  /// Throws Error if there is no index or it does not fit the tar.
  explicit IndexedReader(const std::string& path);
  ~IndexedReader();
  IndexedReader(IndexedReader&&) noexcept;

  std::int64_t samples() const;
  /// Sample `i`, 0 <= i < samples(), in one positioned read.
  Sample read(std::int64_t i) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Every sample of the tar at `path`, by index where there is one, else by scanning.
void for_each_sample(const std::string& path, const std::function<void(Sample&)>& use);

}  // namespace vfm::shard
