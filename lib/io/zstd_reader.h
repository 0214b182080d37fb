// Reads a file compressed by zstd, from its begin to its end.
//
// A file has any number of frames, as from `zstd` and `cat`; skippable frames are skipped. Memory:
// the window that a frame asks for, at most 128 MiB. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "io/file.h"

namespace vfm::io {

/// A compressed file may unpack to so many bytes, and to kUnpackedEach more for each of its own.
inline constexpr std::uint64_t kMostUnpacked = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kUnpackedEach = 200;

/// The end of the name of a file compressed by zstd.
inline constexpr std::string_view kZstdEnd = ".zst";
inline bool is_zstd_name(std::string_view path) {
  return path.ends_with(kZstdEnd);
}

class ZstdReader {
 public:
  /// `most` is the limit kMostUnpacked.
  explicit ZstdReader(File file, std::uint64_t most = kMostUnpacked);
  ~ZstdReader();

  /// Reads up to `size` > 0 unpacked bytes. Returns 0 at the end. Throws Error{format} if the file
  /// is damaged or cut off, Error{limit} if it unpacks to too much, and what File::read_some()
  /// throws.
  std::size_t read_some(void* out, std::size_t size);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::io
