// What a tool that reads shards writes about one part of its work (parts/part_run.h): the part's
// manifest.jsonl, its errors.jsonl, and its marker.
//
// A line of the manifest names files relative to the output folder. Thread-safety: one thread at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "io/error_log.h"
#include "io/manifest.h"
#include "io/text_writer.h"
#include "parts/part_run.h"
#include "shard/part_shards.h"

namespace vfm::shard {

/// How many parts a tool does, and where.
struct PartTask {
  std::string directory;  ///< Output folder, which has the folder "parts".
  std::string tool;       ///< Such as "caption".
  parts::PartChoice choice;
  std::map<std::string, std::string> versions;  ///< Versions of libraries, for the markers.
  std::string clips;             ///< The input, if that is one folder of parts of vfm-clip, or "".
  Progress* progress = nullptr;  ///< Says what the parts wait for; may be null.
};

class PartOutput {
 public:
  /// `out` prints the records too.
  PartOutput(const PartTask& work, parts::Part& part, io::ManifestWriter& out);

  /// Adds a fault. If it may pass (may_pass(), or a server that did not answer), or if `of_machine`
  /// is true, the part is not complete.
  void fault(const io::Fault& fault, bool of_machine = false);
  /// Prints a finished record, and adds it to the manifest. Throws Error if the part is lost.
  void record(const Json& record);
  /// Names a file that the part wrote. `facts` has its "bytes" and "xxh3".
  void wrote(const std::string& path, const Json& facts);
  /// The same for a small file, which is read.
  void wrote_file(const std::string& path);
  /// Writes the part's files and, if no fault may pass and the `input` was complete, its marker.
  /// Returns the number of faults that may pass.
  long finish(const io::InputStreams& input);

 private:
  const PartTask& work_;
  parts::Part& part_;
  io::ManifestWriter& out_;
  io::TextWriter manifest_;
  io::ErrorLog errors_;
  parts::PartResults facts_;
  long passing_ = 0;
  std::string why_;
};

/// Calls `use` with each record of the manifest of a complete part. The files of a record begin
/// with `directory`. Throws Error for a damaged manifest.
void for_each_part_record(const std::string& directory, const std::string& manifest,
                          const std::function<void(Json& record)>& use);

/// The work of a tool on its parts.
struct PartSteps {
  /// Without the folder of clips. If that is the input, a part has the shards of parts of vfm-clip.
  parts::RunTerms terms;
  /// If true, shards that do not count (LaterSources) are left out. A part with clips then begins
  /// only when all parts of vfm-clip are complete.
  bool without_later = false;
  /// Returns the digest of a part (parts::PartRun::DigestOf) of `parts` parts, for other inputs.
  std::function<std::string(int part, int parts)> digest_of;
  /// Does the work of a part. Returns whether the input was complete.
  std::function<io::InputStreams(const parts::Part& part, const PartShards& shards,
                                 PartOutput& output)>
      make;
};

/// Does all parts of `work` that this process gets, and prints their records. Those of a part that
/// is complete already are only printed. Returns the sum of what PartOutput::finish() returned. If
/// the input was not complete, throws Error after one part. Throws what parts::PartRun throws.
long for_each_part(const PartTask& work, io::ManifestWriter& out, const PartSteps& steps);

/// Returns the folder for the parts of a tool that writes beside its input: `output` or the only
/// folder of the input. Throws Error{usage} if there is none, or if the input can be read only
/// once.
std::string part_directory(const std::string& output, const std::vector<std::string>& inputs);
/// Throws Error{usage} if the input can be read only once.
void check_part_inputs(const std::vector<std::string>& inputs);

}  // namespace vfm::shard
