// Looks at the parts of the stages that unlike nodes share out (parts/stage_choice.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/store.h"
#include "parts/part_lease.h"
#include "parts/parts_look.h"
#include "parts/run_file.h"
#include "parts/stage_choice.h"

namespace vfm::parts {

/// Reads the notes of finished parts (parts/part_notes.h), and the leases of the parts that are
/// worked at. It opens no marker that has a note. In a bucket, a look makes one listing for each
/// tool, and reads each lease once. Thread-safety: one thread at a time.
class ListStages {
 public:
  /// `tools`, such as {"clip", "caption"}, are in order of the work. A stage that has not begun is
  /// expected to read what all stages before it write. Throws Error{usage} if the folder has no
  /// list of parts.
  ListStages(std::string directory, std::vector<std::string> tools);

  /// Returns the states of the stages. With `markers`, also looks whether the parts with notes have
  /// their markers. A part whose process has shown no sign of life for too long, since the first
  /// look, waits to be done. Throws Error.
  std::vector<ListStage> look(bool markers);
  /// Returns the shortest beat of the leases that were seen, or the default.
  double beat() const { return beat_; }

 private:
  struct ToolParts {
    RunFile run;
    std::vector<bool> done, working;
    std::map<std::string, KindWork> kinds;
  };
  RunFile run_of(const std::string& tool) const;
  const ToolParts& parts_of(const std::string& tool);
  void read_notes_of(const PartsLook& look, ToolParts& parts) const;
  void see_folders(const std::string& tool, PartsLook& look, ToolParts& parts);
  bool has_input(const std::string& tool, const RunFile& run, int part);

  std::string directory_;
  std::vector<std::string> tools_;
  std::unique_ptr<io::Store> store_;
  int listed_ = 0;
  LeaseWatch watch_;
  double beat_ = kBeatSeconds;
  bool markers_ = false;                   // of this look
  std::map<std::string, ToolParts> seen_;  // in this look
  std::map<std::string, PartsLook> looks_;
};

/// Returns the tool of the stage of which a node of this kind does a part next. Waits while there
/// is none. Returns nullopt if all parts of all stages are done, and when the run winds up
/// (base/stop.h). Throws Error and Stopped.
std::optional<std::string> await_stage(const std::string& directory,
                                       const std::vector<std::string>& tools,
                                       const std::string& kind);

}  // namespace vfm::parts
