// SPDX-License-Identifier: Apache-2.0
#include "share/pipe_look.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <map>

#include "base/harmless.h"
#include "base/units.h"

namespace vfm::share {
namespace {

// Share from which on all slots count as used.
constexpr double kAll = 0.85;
constexpr double kMostly = 0.5;

double between(double value, double most) {
  return std::clamp(value, 0.0, most);
}

/// Returns the share of the time in which other programs hold the program up.
double held_up(const PipeLook& look, std::size_t stage) {
  const StageLook& here = look.stages[stage];
  double output = here.output;
  if (stage + 1 < look.stages.size()) output = std::min(output, 1 - look.stages[stage + 1].input);
  return std::min(1.0, here.input + output);
}

Bottleneck short_of_gpus(const PipeLook& look) {
  double all = 0;
  for (const StageLook& stage : look.stages)
    for (const GpuLook& gpus : stage.gpus)
      if (gpus.state.kind == "compute") all += gpus.busy;
  const bool all_busy = all_gpus_busy(all, look.gpus);
  Bottleneck found;
  double most = 0;
  for (std::size_t i = 0; i < look.stages.size(); ++i)
    for (const GpuLook& gpus : look.stages[i].gpus) {
      const bool computes = gpus.state.kind == "compute";
      const bool is_short =
          is_short_of_gpus(gpus) || (all_busy && computes && waits_for_gpus(gpus));
      if (!look.stages[i].state.alive || !is_short || gpus.busy <= most) continue;
      most = gpus.busy;
      found = {static_cast<int>(i),
               fmt::format("has {:.1f} {}, and items wait for more", most,
                           computes ? fmt::format("of the {} GPUs", look.gpus)
                                    : harmless(gpus.state.kind) + " sessions")};
    }
  return found;
}

}  // namespace

PipeLook look_between(const std::vector<StageState>& before, const std::vector<StageState>& after,
                      double seconds, int slots) {
  PipeLook look{slots, 0, seconds, {}, {}};
  if (seconds <= 0) return look;
  for (const StageState& state : after) {
    StageState old;
    for (const StageState& other : before)
      if (other.pid == state.pid && other.name == state.name && other.unit == state.unit)
        old = other;
    StageLook stage{.state = state};
    stage.rate = state.done > old.done ? static_cast<double>(state.done - old.done) / seconds : 0;
    const auto most = static_cast<double>(state.most);
    stage.slots = between((state.busy_seconds - old.busy_seconds) / seconds, most);
    stage.waiting = between((state.slot_seconds - old.slot_seconds) / seconds, most);
    stage.input = between((state.input_seconds - old.input_seconds) / seconds, 1);
    stage.output = between((state.output_seconds - old.output_seconds) / seconds, 1);
    look.stages.push_back(stage);
  }
  return look;
}

void add_gpus(PipeLook& look, const GpuStates& before, const GpuStates& after) {
  look.gpus = static_cast<int>(after.gpus.size());
  for (StageLook& stage : look.stages)
    stage.gpus = gpus_between(before, after, look.seconds, stage.state.pid);
}

Bottleneck find_bottleneck(const PipeLook& look) {
  int most = -1, least = -1;
  double used = 0, waiting = 0;
  for (std::size_t i = 0; i < look.stages.size(); ++i) {
    const StageLook& stage = look.stages[i];
    if (!stage.state.alive) continue;
    const auto here = static_cast<int>(i);
    used += stage.slots;
    waiting += stage.waiting;
    if (most < 0 || stage.slots > look.stages[static_cast<std::size_t>(most)].slots) most = here;
    if (least < 0 || held_up(look, i) < held_up(look, static_cast<std::size_t>(least)))
      least = here;
  }
  if (least < 0) return {};
  for (std::size_t i = 0; i < look.stages.size(); ++i)
    if (const StageState& s = look.stages[i].state; s.stopped)
      return {static_cast<int>(i), fmt::format("(process {}) is stopped", s.pid)};
  if (const Bottleneck gpus = short_of_gpus(look); gpus.stage >= 0) return gpus;
  const StageLook& first = look.stages[static_cast<std::size_t>(most)];
  if (look.slots > 0 && used >= kAll * look.slots)
    return {most, fmt::format("has {:.1f} of the {} slots", first.slots, look.slots)};
  if (look.slots <= 0 && waiting >= kMostly)
    return {most, fmt::format("has {:.1f} of the {:.1f} slots that make gave", first.slots, used)};
  if (first.slots >= kAll * first.state.most)
    return {most, fmt::format("has all {} slots that its -j allows{}", first.state.most,
                              std::any_of(first.gpus.begin(), first.gpus.end(), waits_for_gpus)
                                  ? ", and its items wait for GPUs"
                                  : "")};
  if (held_up(look, static_cast<std::size_t>(least)) >= kMostly)
    return {-1, "the input comes too slowly"};
  return {least, "waits least for the others"};
}

std::vector<std::string> distinct_names(const std::vector<StageState>& stages) {
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  for (const StageState& stage : stages) {
    const int count = ++seen[stage.name];
    names.push_back(count == 1 ? stage.name : fmt::format("{} ({})", stage.name, count));
  }
  return names;
}

std::vector<std::string> pipe_lines(const PipeLook& look, int width) {
  std::vector<StageState> states;
  std::size_t longest = 0, units = 0;
  for (const StageLook& stage : look.stages)
    states.push_back(stage.state);
  std::vector<std::string> names = distinct_names(states);
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = harmless(names[i]);
    longest = std::max(longest, names[i].size());
    units = std::max(units, states[i].unit.size());
  }
  std::vector<std::string> lines;
  for (const auto& [state, rate, slots, waiting, input, output, gpus] : look.stages) {
    std::string line = fmt::format("{:<{}} {:>9} {:<{}} {:>7}/s", names[lines.size()], longest,
                                   state.done, harmless(state.unit), units, format_count(rate));
    if (!state.alive) {
      line += "  ended";
    } else {
      line += fmt::format("  {:>4.1f} slots, {:>3} waiting", slots, state.waiting);
      if (state.input_bytes > 0)
        line +=
            fmt::format(", {} in the pipe", format_bytes(static_cast<double>(state.input_bytes)));
      if (state.stopped) line += ", stopped";
      for (const GpuLook& kind : gpus)
        line += "; " + gpu_text(kind);
    }
    lines.push_back(line);
  }
  const Bottleneck bottleneck = find_bottleneck(look);
  if (!look.held_up.empty())
    lines.push_back("bottleneck: " + look.held_up);
  else if (bottleneck.stage >= 0)
    lines.push_back(fmt::format("bottleneck: {} {}",
                                names[static_cast<std::size_t>(bottleneck.stage)], bottleneck.why));
  else if (!bottleneck.why.empty())
    lines.push_back("bottleneck: none, " + bottleneck.why);
  for (std::string& line : lines)
    if (width > 0 && line.size() > static_cast<std::size_t>(width))
      line.resize(static_cast<std::size_t>(width));
  return lines;
}

}  // namespace vfm::share
