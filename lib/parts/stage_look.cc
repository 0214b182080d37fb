// SPDX-License-Identifier: Apache-2.0
#include "parts/stage_look.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/file.h"
#include "parts/clip_list.h"
#include "parts/part_notes.h"
#include "parts/part_run.h"

namespace vfm::parts {
namespace {

bool all_done(const std::vector<ListStage>& stages) {
  return std::all_of(stages.begin(), stages.end(),
                     [](const ListStage& stage) { return stage.done == stage.parts; });
}

}  // namespace

ListStages::ListStages(std::string directory, std::vector<std::string> tools)
    : directory_(std::move(directory)), tools_(std::move(tools)), store_(open_parts(directory_)) {
  const std::optional<int> listed = count_parts(directory_, std::string(kListed));
  if (!listed)
    fail_usage("'{}' has no list of parts; make it with: vfm-clip list VIDEO... -o {} -n N",
               directory_, directory_);
  listed_ = *listed;
}

RunFile ListStages::run_of(const std::string& tool) const {
  if (tool != kListed)
    if (std::optional<RunFile> run = read_run_file(directory_, tool)) return *std::move(run);
  RunFile run;
  run.parts = listed_;
  run.of_clips = run.grows = true;
  for (const std::string& before : tools_) {
    if (before == tool) break;
    if (before != kListed) run.after.push_back(before);
  }
  return run;
}

void ListStages::read_notes_of(const PartsLook& look, ToolParts& parts) const {
  std::vector<PartNote> notes = look.notes();
  if (!markers_ && !look.is_listed())
    for (const PartNote& note : notes)
      if (note.part < parts.run.parts) parts.done[static_cast<std::size_t>(note.part)] = true;
  std::sort(notes.begin(), notes.end(),
            [](const PartNote& a, const PartNote& b) { return a.ended > b.ended; });
  std::map<std::string, std::size_t> counts;
  for (const PartNote& note : notes) {
    std::size_t& count = counts[note.node_kind];
    if (count == kRecentParts) continue;
    double& mean = parts.kinds[note.node_kind].seconds;
    mean += (note.seconds - mean) / static_cast<double>(++count);
  }
}

/// Looks into the folders of the parts that have no note, or of all parts.
void ListStages::see_folders(const std::string& tool, PartsLook& look, ToolParts& parts) {
  for (const int part : look.begun()) {
    if (part >= parts.run.parts) continue;
    const auto at = static_cast<std::size_t>(part);
    if (parts.done[at]) continue;
    const std::string folder = tool + "/" + part_name(part);
    parts.done[at] = look.done(part);
    if (parts.done[at]) continue;
    const std::optional<LeaseFacts> lease = look.lease(part);
    if (!lease || watch_.see(folder, *lease) == LeaseWatch::Sign::dead) continue;
    parts.working[at] = true;
    ++parts.kinds[lease->node_kind].working;
    beat_ = std::min(beat_, lease->times.beat);
  }
}

const ListStages::ToolParts& ListStages::parts_of(const std::string& tool) {
  const auto [found, fresh] = seen_.try_emplace(tool);
  ToolParts& parts = found->second;
  if (!fresh) return parts;
  parts.run = run_of(tool);
  parts.done.resize(static_cast<std::size_t>(parts.run.parts));
  parts.working = parts.done;
  const auto [look, first] = looks_.try_emplace(tool, *store_, directory_, tool);
  if (!first) look->second.refresh();
  read_notes_of(look->second, parts);
  see_folders(tool, look->second, parts);
  return parts;
}

bool ListStages::has_input(const std::string& tool, const RunFile& run, int part) {
  if (tool == kListed) return true;
  const auto is_done = [&](const std::string& other, int number) {
    return parts_of(other).done.at(static_cast<std::size_t>(number));
  };
  const std::vector<int> clips = clip_parts_of(part, run.parts, listed_);
  if (!run.of_clips) {
    const std::vector<bool>& done = parts_of(std::string(kListed)).done;
    return std::find(done.begin(), done.end(), false) == done.end();
  }
  for (const int number : clips)
    if (!is_done(std::string(kListed), number)) return false;
  for (const std::string& other : run.after)
    for (const int number : parts_with(parts_of(other).run, clips))
      if (!is_done(other, number)) return false;
  return true;
}

std::vector<ListStage> ListStages::look(bool markers) {
  markers_ = markers;
  seen_.clear();
  std::vector<ListStage> stages;
  for (const std::string& tool : tools_) {
    check_stop();
    const ToolParts& parts = parts_of(tool);
    ListStage stage{tool, parts.run.parts, 0, 0, 0, parts.kinds};
    for (int part = 0; part < stage.parts; ++part) {
      const auto at = static_cast<std::size_t>(part);
      if (parts.done[at])
        ++stage.done;
      else if (parts.working[at])
        ++stage.working;
      else if (has_input(tool, parts.run, part))
        ++stage.ready;
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

std::optional<std::string> await_stage(const std::string& directory,
                                       const std::vector<std::string>& tools,
                                       const std::string& kind) {
  constexpr double kFirstPause = 0.05, kLongestPause = 5;  // seconds
  ListStages look(directory, tools);
  bool said = false;
  for (double pause = kFirstPause; !wind_up_requested();
       pause = std::min(1.5 * pause, kLongestPause)) {
    std::vector<ListStage> stages = look.look(false);
    if (all_done(stages)) stages = look.look(true);
    if (all_done(stages)) return std::nullopt;
    if (const auto stage = choose_stage(stages, kind)) return tools[*stage];
    if (!std::exchange(said, true)) log_info("waiting for parts that other processes do");
    parts::pause(std::min(pause, look.beat() / 4));
  }
  return std::nullopt;
}

}  // namespace vfm::parts
