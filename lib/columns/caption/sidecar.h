// Finds captions in files (sidecars) beside source videos.
// Thread-safety: one thread for each Sidecars.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "columns/column_job.h"
#include "text/captions.h"

namespace vfm::columns {

/// The caption files x.txt, x.json and x.srt beside the videos x.mp4 from which a shard was cut. A
/// faulty file is noted once, and then ignored. Samples of a foreign shard may name any file of
/// this machine or of any server. For security, a file is read, or a server asked, only if `record`
/// names the video ("source", "sources"), or if the file is in one of `folders` after links are
/// followed. An existing local file that may not be read is logged. A sample of a renamed video has
/// the video's old name. If the record has the hash of the video's contents ("source_hash",
/// "source_hashes"), the video's name in the record is used.
class Sidecars {
 public:
  Sidecars(ColumnNotes& notes, const io::Record& record, const std::vector<std::string>& folders);

  /// Returns the present name of the video that a sample's json names, or "" if the json names no
  /// video.
  std::string video_of(const Json& facts) const;
  /// Returns the text for the span [begin, end) of `source`, in seconds, from the file of kind
  /// "txt", "json" or "srt". Returns nothing for an address outside buckets, or if the file or the
  /// text is missing. `source_begin` is the start time of the container, which is time 0 of
  /// subtitles ("srt").
  std::optional<std::string> caption(const std::string& source, const std::string& kind,
                                     double begin, double end, double source_begin = 0);

 private:
  const std::vector<text::Cue>& cues(const std::string& path, const std::string& kind);
  bool may_read(const std::string& source, const std::string& path);
  ColumnNotes& notes_;
  std::string shard_;
  std::set<std::string> named_;
  std::map<std::string, std::string> called_;  // names by hash of contents
  std::vector<std::filesystem::path> folders_;
  std::vector<std::string> prefixes_;  // folders in buckets, with a slash at the end
  bool said_ = false;
  std::map<std::string, std::vector<text::Cue>> files_;
};

/// Returns a column's settings that decide which sidecars may be read: the folders and the record's
/// sources. Names are relative to the shard's folder.
Json sidecar_places(const io::Record& record, const std::vector<std::string>& folders);

/// Returns "dir/a.b.srt" for "dir/a.b.mp4" and "srt".
std::string sidecar_path(const std::string& source, const std::string& kind);

}  // namespace vfm::columns
