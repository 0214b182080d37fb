// SPDX-License-Identifier: Apache-2.0
#include "parts/parts_ahead.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>

#include "io/file.h"
#include "io/store.h"
#include "parts/clip_list.h"
#include "parts/part_marker.h"
#include "parts/part_run.h"

namespace vfm::parts {

std::map<std::string, RunFile> PartsAhead::followers() const {
  std::map<std::string, RunFile> all;
  const std::unique_ptr<io::Store> store = open_parts(directory_);
  for (std::string name : store->list("")) {
    if (!name.ends_with('/')) continue;
    name.pop_back();
    const std::optional<RunFile> run = read_run_file(directory_, name);
    if (!run || !run->of_clips || name == tool_) continue;
    if (tool_ == kListed || std::ranges::find(run->after, tool_) != run->after.end())
      all[name] = *run;
  }
  return all;
}

bool PartsAhead::is_done(const std::string& tool, int part) {
  auto marks = marks_.find(tool);
  if (marks == marks_.end())
    marks = marks_.emplace(std::piecewise_construct, std::tuple(tool), std::tuple(directory_, tool))
                .first;
  return marks->second.done(part);
}

std::uint64_t PartsAhead::bytes_of(int part) {
  const auto [found, fresh] = bytes_.try_emplace(part);
  if (!fresh) return found->second;
  const std::unique_ptr<io::Store> store = open_parts(directory_);
  if (const auto marker = read_marker(*store, marker_name(tool_, part)))
    for (const PartResults::Output& output : marker->results.outputs)
      found->second += output.bytes;
  return found->second;
}

/// Returns true if the program could do a part with some of these parts of vfm-clip.
bool PartsAhead::waits_for(const std::string& tool, const RunFile& run,
                           const std::vector<int>& clip_parts) {
  const auto could_do = [&](int part) {
    const std::set<int> needs = parts_with(own_, clip_parts_of(part, run.parts, listed_));
    return std::ranges::all_of(needs, [&](int own) { return is_done(tool_, own); });
  };
  return std::ranges::any_of(parts_with(run, clip_parts),
                             [&](int part) { return !is_done(tool, part) && could_do(part); });
}

std::uint64_t PartsAhead::bytes() {
  const std::map<std::string, RunFile> all = followers();
  if (all.empty()) return 0;
  listed_ = count_parts(directory_, std::string(kListed)).value_or(0);
  if (tool_ == kListed)
    own_ = {.parts = listed_, .of_clips = true};
  else
    own_ = read_run_file(directory_, tool_).value_or(RunFile{1});
  std::uint64_t bytes = 0;
  for (int part = 0; part < own_.parts; ++part) {
    if (!is_done(tool_, part)) continue;
    const std::vector<int> clips = clip_parts_of(part, own_.parts, listed_);
    if (std::ranges::any_of(all, [&](const auto& follower) {
          return waits_for(follower.first, follower.second, clips);
        }))
      bytes += bytes_of(part);
  }
  return bytes;
}

}  // namespace vfm::parts
