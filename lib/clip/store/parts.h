// The clips of videos that are joined, as they are made, until all are there and their shards are
// written: one file, DIR/.NAME.parts, which a killed run leaves to the next.
//
// Clips of several videos are appended as they come, in any order; when a video has ended, a line
// says which are its. Each record has a checksum, and the next run takes all before the first
// damaged one. The file is not synced: after a crash of the machine, checksums tell the losses. The
// user of the file holds DIR/NAME.json (shard/receipt.h), which keeps other programs away. Memory:
// one clip, and each video's summary. Thread-safety: any thread.
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
#include "shard/sample.h"

namespace vfm::clip {

class ClipParts {
 public:
  /// The place of a record in the file, after its length and checksum.
  struct Place {
    std::uint64_t offset = 0, size = 0;
  };
  /// A video that has ended.
  struct Part {
    std::string summary;  ///< JSON
    std::vector<Place> clips;
  };

  /// `settings`: the clips' settings. `keep`: keeps the parts of an earlier run with these
  /// settings. Throws Error.
  ClipParts(std::string path, const Json& settings, bool keep);

  /// Appends a clip. Throws Error, of the disk.
  Place add(const shard::Sample& sample);
  /// Says that the video with this hash has ended, with these clips.
  void end(const std::string& hash, const Json& summary, std::vector<Place> clips);
  /// Null if it has not ended. Valid as long as this is.
  const Part* find(const std::string& hash) const;
  /// Throws Error if the clip has changed since it was written.
  shard::Sample read(const Place& place) const;
  void remove();

  static std::string path_of(const std::string& directory, const std::string& name) {
    return io::join_path(directory, "." + name + ".parts");
  }

 private:
  Place append(std::string_view payload);
  void read_all(const std::string& header);
  std::string payload_at(const Place& place) const;

  std::string path_;
  io::File file_;
  mutable std::mutex mutex_;  // guards what follows, and the end of the file
  std::uint64_t size_ = 0;
  std::map<std::string, Part> ended_;  // by hash; nodes stay where they are
};

}  // namespace vfm::clip
