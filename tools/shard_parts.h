// The option --part of tools whose input is shards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/part_options.h"
#include "io/folder.h"
#include "shard/part_output.h"

/// Throws Error{usage} for options that cannot be of a part. Call it in Tool::check().
inline void check_part(const vfm::cli::PartOptions& part, bool force, bool dry_run,
                       const std::string& report) {
  part.check();
  if (part.choice.whole()) return;
  if (force)
    vfm::fail_usage(
        "--part does not do a complete part again: --force is for a work without parts");
  if (!report.empty()) vfm::fail_usage("--report is of the whole work: leave out --part");
  if (dry_run) vfm::fail_usage("--dry-run predicts the whole work: leave out --part");
}

/// Returns the parts of a tool, such as "caption", or nullopt without --part. `output` is the
/// folder of --output, or empty. `ffmpeg` is media::ffmpeg_version(). Throws Error{usage}.
inline std::optional<vfm::shard::PartTask> part_work(
    const std::string& tool, const vfm::cli::PartOptions& part, const std::string& output,
    const std::vector<std::string>& inputs, const std::string& ffmpeg, vfm::Progress& progress) {
  if (part.choice.whole()) return std::nullopt;
  vfm::shard::PartTask task{vfm::shard::part_directory(output, inputs),        tool, part.choice,
                            {{"ffmpeg", ffmpeg.substr(0, ffmpeg.find('\n'))}}, "",   &progress};
  if (inputs.size() == 1 && vfm::io::is_folder(inputs[0]) &&
      vfm::shard::ListedClips::are_in(inputs[0]))
    task.clips = inputs[0];
  if (tool == "pack" && !task.clips.empty() &&
      vfm::io::canonical_path(task.clips) == vfm::io::canonical_path(task.directory))
    vfm::fail_usage("'{}' has parts of vfm-clip; pack into another folder", task.directory);
  if (part.choice.follow && task.clips.empty())
    vfm::fail_usage(
        "--follow waits for parts of vfm-clip: give one folder with its list as the input");
  return task;
}
