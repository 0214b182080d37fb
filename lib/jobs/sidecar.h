// Captions that already exist: in the shard, in a record, or in files beside the source video.
// Thread-safety: one Sidecars a thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jobs/column_job.h"
#include "text/captions.h"

namespace vfm::jobs {

/// The caption files of the videos that a shard was cut from: x.txt, x.json, x.srt beside x.mp4.
/// Each is read once. What is wrong with one goes into the notes, once, and the file counts as
/// absent.
class Sidecars {
 public:
  explicit Sidecars(ColumnNotes& notes) : notes_(notes) {}

  /// What the `kind` ("txt", "json", "srt") beside `source` says of its span [begin, end) in
  /// seconds. Nothing if there is no such file, or it says nothing there. URLs have no sidecars.
  std::optional<std::string> caption(const std::string& source, const std::string& kind,
                                     double begin, double end);

 private:
  const std::vector<text::Cue>& cues(const std::string& path, const std::string& kind);
  ColumnNotes& notes_;
  std::map<std::string, std::vector<text::Cue>> files_;
};

/// "dir/a.b.mp4", "srt" -> "dir/a.b.srt".
std::string sidecar_path(const std::string& source, const std::string& kind);

}  // namespace vfm::jobs
