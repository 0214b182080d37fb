// Captions that already exist: in the shard, in a record, or in files beside the source video.
// Thread-safety: one Sidecars a thread.
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

/// The caption files of the videos that a shard was cut from: x.txt, x.json, x.srt beside x.mp4.
/// Each is read once. What is wrong with one goes into the notes, once, and the file counts as
/// absent.
/// The name of the video stands in the shard, which may be a stranger's and name any file here. So
/// only videos count that `record` names as its "source" or among its "sources", and what lies,
/// links followed, below one of `folders`. One that is there and must not be read is logged.
/// A video that was renamed has its old name in the shard: where the record knows its contents
/// ("source_hash", "source_hashes"), its name in the record is the one that counts.
class Sidecars {
 public:
  Sidecars(ColumnNotes& notes, const io::Record& record, const std::vector<std::string>& folders);

  /// What the video of a sample is called now, by the sample's json; "" where that does not say.
  std::string video_of(const Json& facts) const;
  /// What the `kind` ("txt", "json", "srt") beside `source` says of its span [begin, end) in
  /// seconds. Nothing if there is no such file, or it says nothing there. URLs have no sidecars.
  /// `source_begin`: where its container begins, from which subtitles ("srt") count.
  std::optional<std::string> caption(const std::string& source, const std::string& kind,
                                     double begin, double end, double source_begin = 0);

 private:
  const std::vector<text::Cue>& cues(const std::string& path, const std::string& kind);
  bool may_read(const std::string& source, const std::string& path);
  ColumnNotes& notes_;
  std::string shard_;
  std::set<std::string> named_;
  std::map<std::string, std::string> called_;  // by the hash of its contents
  std::vector<std::filesystem::path> folders_;
  bool said_ = false;
  std::map<std::string, std::vector<text::Cue>> files_;
};

/// What decides which files beside sources may be read, named from the shard's folder: for the
/// settings of a column.
Json sidecar_places(const io::Record& record, const std::vector<std::string>& folders);

/// "dir/a.b.mp4", "srt" -> "dir/a.b.srt".
std::string sidecar_path(const std::string& source, const std::string& kind);

}  // namespace vfm::columns
