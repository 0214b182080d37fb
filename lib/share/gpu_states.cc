// SPDX-License-Identifier: Apache-2.0
#include "share/gpu_states.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "share/gpu_map.h"

namespace vfm::share {
namespace {

template <std::size_t N>
std::string gpu_text(const char (&from)[N]) {
  return {from, ::strnlen(from, N)};
}

const char* kind_name(std::int32_t kind) {
  const auto is = [kind](GpuKind other) { return kind == static_cast<std::int32_t>(other); };
  return is(GpuKind::compute) ? "compute" : is(GpuKind::decode) ? "decode" : "encode";
}

GpuStageState read_stage(const GpuMap& map, const GpuRecord& record,
                         const std::vector<GpuState>& gpus) {
  GpuStageState state{.stage = gpu_text(record.stage), .kind = kind_name(record.kind)};
  state.pid = record.pid;
  state.alive = record.gone == 0;
  state.waiting = state.alive ? record.waiting : 0;
  const GpuCounts counts = state.alive ? map.counts_now(record, gpu_clock()) : record.counts;
  state.short_seconds = counts.short_of;
  for (std::size_t c = 0; c < gpus.size(); ++c) {
    const GpuSet bit = gpu_bit(static_cast<int>(c));
    state.busy_seconds += counts.busy[c];
    state.items += static_cast<std::int64_t>(counts.items[c]);
    if ((record.may & bit) != 0) ++state.gpus;
    if ((record.left_out & bit) != 0) state.left_out.push_back(gpus[c].name);
    if (!state.alive) continue;
    state.held += record.items[c];
    if (record.model[c] == GpuModel::loaded)
      state.loaded.push_back(gpus[c].name);
    else if (record.model[c] != GpuModel::none)
      state.loading.push_back(gpus[c].name);
  }
  state.lacks_memory = record.kind == static_cast<std::int32_t>(GpuKind::compute) &&
                       state.waiting > 0 && state.loaded.empty() && state.loading.empty();
  return state;
}

}  // namespace

GpuWatch::GpuWatch(std::string share) : share_(std::move(share)) {}

GpuWatch::~GpuWatch() = default;

GpuStates GpuWatch::look() {
  GpuStates states;
  std::error_code error;
  if (!map_ && !std::filesystem::exists(GpuMap::file_of(share_), error)) return states;
  try {
    if (!map_) map_ = std::make_unique<GpuMap>(share_);
  } catch (const Error&) {
    return states;
  } catch (const Stopped&) {
    return states;  // Other threads handle the stop request.
  }
  const GpuMap::Locked lock(*map_);
  if (lock.stops()) return states;
  map_->end_dead();
  for (std::size_t c = 0; c < map_->gpus(); ++c) {
    const GpuEntry& entry = map_->file().head.gpu[c];
    const int gpu = static_cast<int>(c);
    states.gpus.push_back(
        {gpu_text(entry.name), entry.memory, map_->loaded_memory(gpu) + map_->session_memory(gpu)});
  }
  std::vector<std::pair<int, GpuStageState>> found;
  for (const GpuRecord& record : map_->file().records)
    if (record.used != 0) found.emplace_back(record.place, read_stage(*map_, record, states.gpus));
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [place, state] : found)
    states.stages.push_back(std::move(state));
  return states;
}

}  // namespace vfm::share
