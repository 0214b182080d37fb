// The list of inputs that vfm-clip list shares out to parts.
//
// A unit is what one part must have as a whole: one large video, or a bucket of small videos and
// pictures, which share shards. The bucket of a small video is the XXH3-64 of its path modulo the
// number of buckets. That number depends on the small videos and the size of shards alone, so the
// units do not depend on the number of parts. Units go to parts by their bytes, the largest first,
// each to the part with the fewest bytes (Graham, "Bounds on multiprocessing timing anomalies",
// 1969).
//
//   DIR/parts/list.json        {"version":1, "parts":N, "shard_bytes":…, "buckets":B, "videos":…,
//                              "bytes":…, "digits":2, "appended":[{"parts":…, "buckets":…,
//                              "videos":…, "bytes":…}, …]}, with an entry for each call that added
//                              videos
//   DIR/parts/list/00003.jsonl the inputs of part 3, a manifest (io/streams.h): {"kind":"video",
//                              "path":…, …fields of the input…, "bytes":…, "place":P, "bucket":K}
//
// "place" counts the videos of all calls, in order of the input, from 0. "bucket" is there only for
// a video of a bucket. The lines of a unit follow each other, in order of their places, and the
// units are in order of their first places. Later calls add videos, and so parts and buckets; what
// was there stays as it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "io/error_log.h"

namespace vfm::parts {

inline constexpr std::uint64_t kShardBytes = std::uint64_t{256} << 20;

struct ListOptions {
  std::vector<std::string> inputs;  ///< Arguments for io::ManifestReader.
  std::string directory;
  /// Number of parts to make. With 0, new parts of a list that is there get as many bytes as its
  /// parts have on average.
  int parts = 0;
  /// Maximum size of a shard in bytes. 0 means that of the list, or kShardBytes for a new list.
  std::uint64_t shard_bytes = 0;
  /// Returns true for the path of a picture, which always goes into a bucket.
  std::function<bool(const std::string& path)> is_picture;
};

/// What a call did.
struct ListFacts {
  struct NewPart {
    int part = 0;
    std::uint64_t videos = 0, bytes = 0;
  };
  int parts = 0;  ///< Number of parts of the whole list.
  std::vector<NewPart> made;
  std::uint64_t known = 0;  ///< Videos that the list had, or that came twice. They are left out.
};

/// Reads the input once, and makes or extends the list. A server is asked for the size of an object
/// whose record does not tell it. A video that cannot be opened is in the list, so that its part
/// reports it. Records of other kinds than "video" and "image" are left out,
/// as faults. Only one process at a time changes the list of a folder (parts/part_lease.h). Memory:
/// some 100 MiB, and 48 bytes for each part, whatever the number of videos. Temporary files in
/// DIR/parts/list take a few times as many bytes as the input. Throws Error{usage} if a new list
/// has no number of parts, or if the size of shards is not that of the list; Error and Stopped.
ListFacts write_list(const ListOptions& options, const io::OnFault& on_bad, Progress& progress);

/// The tool whose parts the list counts.
inline constexpr std::string_view kListed = "clip";

/// What list.json says.
struct ClipList {
  int parts = 0;
  std::uint64_t shard_bytes = 0, buckets = 0, videos = 0, bytes = 0;
  int digits = 0;  ///< Hex digits in the name of a subfolder of outputs.
};
/// Returns nullopt if the folder has no list.
std::optional<ClipList> read_list(const std::string& directory);
/// Returns DIR/parts/list/00003.jsonl.
std::string list_path(const std::string& directory, int part);

/// Returns how many hex digits name a subfolder of outputs, at least 2, so that a subfolder has
/// about 10,000 files at most. Depends on what is listed, but not on the number of parts. Pure.
int subfolder_digits(const ClipList& list);

/// The rules of buckets. A video is small up to shard_bytes/16 if its record has a path and no
/// other fields, and is no address of which only FFmpeg knows. fill() is what the video counts in a
/// bucket, and count_buckets() the number of buckets for the sum of all fills. bucket_of() is below
/// `buckets`.
std::uint64_t bucket_fill(std::uint64_t bytes, std::size_t path_bytes, std::uint64_t shard_bytes);
std::uint64_t count_buckets(std::uint64_t fills, std::uint64_t shard_bytes);
std::uint64_t bucket_of(std::string_view path, std::uint64_t buckets);

}  // namespace vfm::parts
