// SPDX-License-Identifier: Apache-2.0
#include "parts/needed_parts.h"

#include <fmt/core.h>

#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "io/file.h"
#include "io/store.h"
#include "parts/part_inputs.h"
#include "parts/part_run.h"

namespace vfm::parts {
namespace {

constexpr const char* kClip = "clip";

}  // namespace

NeededParts::NeededParts(std::string clips, RunFile run, bool all_clips)
    : clips_(std::move(clips)),
      run_(std::move(run)),
      all_clips_(all_clips),
      listed_(run_.grows && !all_clips ? run_.parts : count_parts(clips_, kClip).value_or(0)) {}

bool NeededParts::is_done(const std::string& tool, int number) {
  auto marks = marks_.find(tool);
  if (marks == marks_.end())
    marks =
        marks_.emplace(std::piecewise_construct, std::tuple(tool), std::tuple(clips_, tool)).first;
  const bool done = marks->second.done(number);
  if (done) done_.emplace(tool, number);
  return done;
}

const RunFile* NeededParts::find_run(const std::string& tool) {
  auto found = runs_.find(tool);
  if (found == runs_.end()) {
    const std::optional<RunFile> run = read_run_file(clips_, tool);
    if (!run) return nullptr;
    found = runs_.emplace(tool, *run).first;
  }
  return &found->second;
}

NeededParts::Numbers NeededParts::open(int part, bool first) {
  Numbers open;
  const std::vector<int> own = clip_parts_of(part, run_.parts, listed_);
  std::vector<int> clips = own;
  if (all_clips_) {
    while (first_open_ < listed_ && is_done(kClip, first_open_))
      ++first_open_;
    clips.resize(static_cast<std::size_t>(listed_ - first_open_));
    std::iota(clips.begin(), clips.end(), first_open_);
  }
  const auto look = [&](const std::string& tool, int number) {
    if (first && !open.empty()) return;
    if (!is_done(tool, number)) open[tool].insert(number);
  };
  for (const int number : clips)
    look(kClip, number);
  for (const std::string& tool : run_.after) {
    if (first && !open.empty()) break;
    const RunFile* const other = find_run(tool);
    if (!other) {
      open[tool];
      continue;
    }
    for (const int number : parts_with(*other, own))
      look(tool, number);
  }
  return open;
}

NeededParts::Numbers NeededParts::open(const std::vector<int>& parts) {
  Numbers all;
  for (const int part : parts)
    for (const auto& [tool, numbers] : open(part, false))
      all[tool].insert(numbers.begin(), numbers.end());
  return all;
}

bool NeededParts::are_done(int part) {
  return open(part, true).empty();
}

std::string NeededParts::missing(const std::vector<int>& parts) {
  std::string clauses;
  for (const auto& [tool, numbers] : open(parts)) {
    PartInputs inputs{count_parts(clips_, tool).value_or(0), {}, {numbers.begin(), numbers.end()}};
    clauses += clauses.empty() ? "" : "; ";
    clauses += numbers.empty() ? fmt::format("vfm-{} has no parts in '{}'", tool, clips_)
                               : fmt::format("of vfm-{}, {}", tool, inputs.message(clips_));
  }
  return clauses;
}

bool NeededParts::have_moved(const std::vector<int>& parts) {
  const std::unique_ptr<io::Store> store = open_parts(clips_);
  const Numbers all = open(parts);
  const bool first = leases_.empty();
  bool moved = std::exchange(done_before_, done_.size()) != done_.size() && !first;
  for (const auto& [tool, numbers] : all) {
    const PartsLook look(*store, clips_, tool);
    for (const int number : numbers) {
      // The name of the newest lease changes with each sign of life.
      const std::optional<LeaseName> lease = look.newest_lease(number);
      const auto [at, fresh] = leases_.try_emplace(tool + "/" + part_name(number), lease);
      if (fresh || at->second == lease) continue;
      moved = moved || lease;
      at->second = lease;
    }
  }
  return moved && !first;
}

}  // namespace vfm::parts
