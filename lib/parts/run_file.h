// parts/TOOL/run.json: what all processes that do parts of one work agree on.
//
//   {"version":1, "tool":"vfm-embed", "parts":16, "shares":"clips", "grows":true,
//    "after":["caption"], "digest":"9f…", "settings":{…}}
//
// The first process creates the file, and others are refused if they want something else.
//   parts     the number of parts. vfm-clip has none here: the list counts its parts (clip_list.h).
//   shares    "clips": a part has the shards that certain parts of vfm-clip wrote. "names": a part
//             has the shards whose file names have certain hashes (part_of_shard()).
//   grows     with "clips" alone. If true, part I has the shards of part I of vfm-clip, and a list
//             with more parts makes more parts. If false, part I has the shards of those parts of
//             vfm-clip whose number, modulo `parts`, is I.
//   after     the programs with parts in the folder of clips whose columns the work reads. A part
//             is done after their parts with the same shards.
//   settings  all that decides the bytes of outputs, and its digest
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "io/store.h"
#include "parts/part_choice.h"

namespace vfm::parts {

/// Returns the command that does the parts of `tool`, such as "vfm-clip" for "clip".
std::string command_of(const std::string& tool);

/// What a process wants of a work.
struct RunTerms {
  std::string clips;  ///< Folder of the clips whose parts are shared out, or "" for "names".
  /// Programs, such as "caption", whose columns the work reads. Those with parts in `clips` come
  /// into "after".
  std::vector<std::string> reads;
  /// Those of `reads` that come into "after" although they have no parts yet.
  std::vector<std::string> awaits;
  HeldJson settings;  ///< An object with all that decides the bytes of outputs, or null for none.
  /// The option that sets a member of `settings`, such as "recipe.encoder", for messages.
  std::map<std::string, std::string> options;
};

/// What run.json says.
struct RunFile {
  int parts = 0;  ///< For vfm-clip, and if `grows`, the number of parts of the list.
  bool of_clips = false, grows = false;
  std::vector<std::string> after;
  std::string digest;  ///< Digest of the settings, or "" if there are none.
};

/// Returns the run.json of `tool`, such as "embed", or nullopt if there is none. Throws Error.
std::optional<RunFile> read_run_file(const std::string& directory, const std::string& tool);

/// Returns the number of parts that `tool`, such as "clip", has in the folder, or nullopt if the
/// folder has no parts of the tool. Throws Error.
std::optional<int> count_parts(const std::string& directory, const std::string& tool);

/// Creates run.json if there is none, and returns it. Throws Error{usage} if nobody said the number
/// of parts, if the part of `choice` is not below it, or if vfm-clip has no list. Throws
/// Error{conflict} if `choice` or `terms` differ from run.json. The message then says how, and what
/// to do.
RunFile agree_on_run(const std::string& directory, const std::string& tool,
                     const PartChoice& choice, const RunTerms& terms);

/// Throws Error{conflict} if a program of terms.reads has begun parts and is not in `run.after`.
/// The work would read its columns or not, as they come.
void check_begun(const RunFile& run, const std::string& directory, const std::string& tool,
                 const RunTerms& terms);

/// Returns the parts of vfm-clip that a part has, of `listed` parts. Pure.
std::vector<int> clip_parts_of(int part, int parts, int listed);
/// Returns the parts of a work that have shards of these parts of vfm-clip. Pure.
std::set<int> parts_with(const RunFile& run, const std::vector<int>& clip_parts);

}  // namespace vfm::parts
