// SPDX-License-Identifier: Apache-2.0
#include "share/gpu_look.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/harmless.h"
#include "base/units.h"

namespace vfm::share {
namespace {

// Shares from which on all GPUs count as busy, and a wait counts as most of the time.
constexpr double kAllGpus = 0.85, kMostTime = 0.5;

std::string join_names(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names)
    all += (all.empty() ? "" : ", ") + harmless(name);
  return all;
}

}  // namespace

std::vector<GpuLook> gpus_between(const GpuStates& before, const GpuStates& after, double seconds,
                                  std::int64_t pid) {
  std::vector<GpuLook> looks;
  for (const GpuStageState& state : after.stages) {
    if (state.pid != pid || seconds <= 0) continue;
    GpuStageState old;
    for (const GpuStageState& other : before.stages)
      if (other.pid == pid && other.stage == state.stage && other.kind == state.kind) old = other;
    GpuLook& look = looks.emplace_back();
    look.state = state;
    look.busy = std::max(0.0, (state.busy_seconds - old.busy_seconds) / seconds);
    look.short_of = std::clamp((state.short_seconds - old.short_seconds) / seconds, 0.0, 1.0);
  }
  return looks;
}

std::string gpu_text(const GpuLook& look) {
  const GpuStageState& state = look.state;
  std::string text = fmt::format("{:.1f}", look.busy);
  if (!state.loaded.empty()) text += fmt::format(" of {}", state.loaded.size());
  text += state.kind == "compute" ? " GPUs" : fmt::format(" {} sessions", harmless(state.kind));
  if (!state.loading.empty()) text += fmt::format(", {} changing", state.loading.size());
  if (state.waiting > 0) {
    text += fmt::format(", {} waiting", state.waiting);
    if (state.lacks_memory) text += " for memory";
  }
  for (const std::string& name : state.left_out)
    text += fmt::format(", GPU '{}' left out", harmless(name));
  return text;
}

bool waits_for_gpus(const GpuLook& look) {
  return look.short_of >= kMostTime;
}

bool is_short_of_gpus(const GpuLook& look) {
  const int loaded = static_cast<int>(look.state.loaded.size());
  return waits_for_gpus(look) &&
         (look.state.kind == "compute" ? all_gpus_busy(look.busy, loaded) : look.busy > 0);
}

bool all_gpus_busy(double busy, int gpus) {
  return gpus > 0 && busy >= kAllGpus * gpus;
}

std::vector<std::string> gpu_columns() {
  return {"GPU", "memory", "in use", "models of", "left out by"};
}

std::vector<std::vector<std::string>> gpu_rows(const GpuStates& states) {
  std::vector<std::vector<std::string>> rows;
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const GpuState& gpu : states.gpus) {
    std::vector<std::string> models, left_out;
    for (const GpuStageState& stage : states.stages) {
      if (has(stage.loaded, gpu.name)) models.push_back(stage.stage);
      if (has(stage.loading, gpu.name)) models.push_back(stage.stage + " (changing)");
      if (has(stage.left_out, gpu.name)) left_out.push_back(stage.stage);
    }
    rows.push_back({gpu.name, format_bytes(static_cast<double>(gpu.memory)),
                    format_bytes(static_cast<double>(gpu.used)), join_names(models),
                    join_names(left_out)});
  }
  return rows;
}

std::vector<std::string> gpu_stage_columns() {
  return {"program",     "needs GPUs to", "items",    "GPUs busy, mean",
          "without one", "waiting",        "model on", "left out"};
}

std::vector<std::string> gpu_stage_row(const std::string& name, const GpuStageState& state,
                                       double seconds) {
  seconds = std::max(seconds, 1e-9);
  return {name,
          state.kind,
          fmt::format("{}", state.items),
          fmt::format("{:.2f}", state.busy_seconds / seconds),
          fmt::format("{:.0f} %", 100 * std::min(1.0, state.short_seconds / seconds)),
          fmt::format("{}{}", state.waiting, state.lacks_memory ? ", for memory" : ""),
          join_names(state.loaded),
          join_names(state.left_out)};
}

}  // namespace vfm::share
