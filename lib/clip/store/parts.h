// Keeps finished clips of joined videos in one file, DIR/.NAME.parts, until the shards are written.
//
// Each record has a checksum. After a killed run, the next run uses all records before the first
// damaged record. The file is not synced. The caller locks DIR/NAME.json (shard/receipt.h). Where
// that is in a bucket, which has no locks, the file itself is locked. Memory: one clip, and each
// video's summary. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "io/file.h"
#include "io/folder.h"
#include "shard/sample.h"

namespace vfm::clip {

class ClipParts {
 public:
  /// The place of a record's payload in the file.
  struct Place {
    std::uint64_t offset = 0, size = 0;
  };
  /// The record of a finished video.
  struct Part {
    std::string summary;
    std::vector<Place> clips;
  };

  /// Opens the file. If `keep` is true, keeps the records of an earlier run with the same
  /// `settings`. Throws Error.
  ClipParts(std::string path, const Json& settings, bool keep);

  /// Appends a clip. Throws Error if the clip cannot be written.
  Place add(const shard::Sample& sample);
  /// Records that the video with this hash has ended, and which clips it has.
  void end(const std::string& hash, const Json& summary, std::vector<Place> clips);
  /// Returns the video's record, or null if the video has not ended. The record is valid until this
  /// object is destroyed.
  const Part* find(const std::string& hash) const;
  /// Reads a clip. Throws Error if the clip has changed since it was written.
  shard::Sample read(const Place& place) const;
  void remove();

  /// Returns DIR/.NAME.parts. For a bucket, the file is in a local folder, since the shards of a
  /// batch come all at once.
  static std::string path_of(const std::string& directory, const std::string& name) {
    return io::join_path(io::scratch_folder_of(directory), "." + name + ".parts");
  }

 private:
  void open(bool keep);
  Place append(std::string_view payload);
  void read_all(const std::string& header);
  std::string payload_at(const Place& place) const;

  std::string path_;
  io::File file_;
  mutable std::mutex mutex_;  // guards the members below and the file's end
  std::uint64_t size_ = 0;
  std::map<std::string, Part> ended_;  // by hash; pointers to elements must remain valid
};

}  // namespace vfm::clip
