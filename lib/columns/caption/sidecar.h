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
/// Each is read once. Its fault goes into the notes, once, and the file counts as absent.
/// The shard names the video; a foreign shard may name any file here. So a file is read only if
/// `record` names the video as its "source" or among its "sources", or if, links followed, it lies
/// below one of `folders`. An existing file that must not be read is logged.
/// The shard has the old name of a renamed video: if the record has the hash of its contents
/// ("source_hash", "source_hashes"), the record's name counts.
class Sidecars {
 public:
  Sidecars(ColumnNotes& notes, const io::Record& record, const std::vector<std::string>& folders);

  /// The present name of a sample's video, by the sample's json; "" if that has none.
  std::string video_of(const Json& facts) const;
  /// The text of the `kind` ("txt", "json", "srt") beside `source` for its span [begin, end) in
  /// seconds. Nothing if there is no such file or text. URLs have no sidecars. `source_begin`: the
  /// begin of its container, from which subtitles ("srt") count.
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

/// The names, from the shard's folder, that decide which files beside sources may be read; for a
/// column's settings.
Json sidecar_places(const io::Record& record, const std::vector<std::string>& folders);

/// "dir/a.b.mp4", "srt" -> "dir/a.b.srt".
std::string sidecar_path(const std::string& source, const std::string& kind);

}  // namespace vfm::columns
