// Files in the seekable format of zstd: frames that are unpacked one without the other, and at the
// end a table of their sizes in a skippable frame, which other programs pass over
// (contrib/seekable_format in the sources of zstd).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "io/file.h"

namespace vfm::io {

/// Compresses into frames. The same calls give the same bytes with the same version of libzstd.
/// Thread-safety: one thread at a time.
class ZstdFrameWriter {
 public:
  /// A frame has at most kMost bytes, unpacked. end_part() ends one of at least kLeast.
  static constexpr std::size_t kMost = std::size_t{4} << 20, kLeast = std::size_t{256} << 10;

  /// Hands the compressed bytes to `write`.
  explicit ZstdFrameWriter(std::function<void(std::string_view)> write);
  ~ZstdFrameWriter();
  void add(std::string_view data);
  /// Says that what was added so far is often read without what follows.
  void end_part();
  /// Ends the last frame, and writes the table.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads such a file here and there. Thread-safety: any thread.
class ZstdFrames {
 public:
  /// Larger frames are not read, since a whole frame is held in memory.
  static constexpr std::uint64_t kMostFrame = std::uint64_t{64} << 20;
  /// The frames used last are held in memory, up to so many bytes of all files together.
  static constexpr std::size_t kMostHeld = std::size_t{256} << 20;

  /// Returns whether a file has a table that fits its size, and no frame above kMostFrame.
  static bool are_in(const File& file);
  /// Reads the table. Throws Error{format} if there is none, and Error{limit} if the file would
  /// unpack to too much (io/zstd_reader.h).
  explicit ZstdFrames(File file);
  ~ZstdFrames();

  const File& file() const;
  /// Returns the unpacked bytes.
  std::uint64_t size() const;
  /// Reads exactly `size` unpacked bytes at `offset`, by few reads of the file. Throws
  /// Error{format} if a frame is damaged.
  void pread_exact(void* out, std::size_t size, std::uint64_t offset) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::io
