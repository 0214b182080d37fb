// SPDX-License-Identifier: Apache-2.0
#include "share/gpu_map.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "share/pipe_places.h"

namespace vfm::share {
namespace {

// Seconds.
constexpr double kLook = 0.25, kLookOfStarved = 0.05;  // between plans
constexpr double kSettles = 1;  // after a load, before the averages show its effect
constexpr double kAnswers = 1;  // without a beat, before a program is regarded as stopped
constexpr double kUnloads = 5;  // after which an unwanted model that is still loaded is fixed

constexpr GpuKind kSessionKinds[] = {GpuKind::decode, GpuKind::encode};

bool is_of(const GpuRecord& record, GpuKind kind) {
  return record.kind == static_cast<std::int32_t>(kind);
}
bool is_compute(const GpuRecord& record) {
  return is_of(record, GpuKind::compute);
}
bool counts(const GpuRecord& record) {
  return record.used != 0 && record.gone == 0;
}

template <std::size_t N>
void set_name(char (&to)[N], std::string_view name) {
  std::memset(to, 0, N);
  std::memcpy(to, name.data(), std::min(name.size(), N - 1));
}

template <class Is>
GpuSet gpus_where(Is is) {
  GpuSet set = 0;
  for (int c = 0; c < kMostGpus; ++c)
    if (is(static_cast<std::size_t>(c))) set |= gpu_bit(c);
  return set;
}

/// Returns `sessions`, or fewer if they do not fit into `memory`.
int fitting_sessions(int sessions, std::int64_t memory) {
  return static_cast<int>(
      std::max<std::int64_t>(0, std::min<std::int64_t>(sessions, memory / kSessionBytes)));
}

GpuSet gpus_with(const GpuRecord& record, GpuModel state) {
  return gpus_where([&](std::size_t c) { return record.model[c] == state; });
}

}  // namespace

double gpu_clock() {
  return static_cast<double>(pipe_clock()) * 1e-9;
}

std::string GpuMap::file_of(const std::string& share) {
  return share.empty() ? share : share + ".gpus";
}

GpuMap::GpuMap(const std::string& share)
    : shared_(file_of(share), sizeof(GpuFile), {kGpuWords, sizeof kGpuWords}, "VFM_SHARE") {}

std::size_t GpuMap::gpus() const {
  return static_cast<std::size_t>(std::clamp<std::int32_t>(file().head.gpus, 0, kMostGpus));
}

void GpuMap::join(std::span<const SharedGpu> gpus, const GpuNeed& need) {
  const Locked lock(*this);
  lock.need();
  end_dead();
  const auto is_free = [&](std::size_t i) {
    return !counts(file().records[i]) && !shared_.lives(i);
  };
  std::size_t best = kGpuRecords;
  for (std::size_t i = 0; i < kGpuRecords; ++i) {
    const auto left = [&](std::size_t at) {
      return file().records[at].used == 0 ? 0 : file().records[at].left;
    };
    if (is_free(i) && (best == kGpuRecords || left(i) < left(best))) best = i;
  }
  if (std::none_of(std::begin(file().records), std::end(file().records), counts)) {
    // All programs of an earlier pipe have ended. Their GPUs may have had other numbers.
    for (GpuRecord& record : file().records)
      record.used = 0;
    file().head.gpus = 0;
    file().head.looked = file().head.changed = 0;
  }
  for (const SharedGpu& gpu : gpus)
    add_gpu(gpu, need.kind);
  if (best == kGpuRecords || !shared_.live(best, true))
    fail_usage("{} programs share GPUs, as many as can; name another file by VFM_SHARE",
               kGpuRecords);
  own_index_ = best;
  GpuRecord& record = own();
  record.used = 0;  // If the program is killed from here on, the record stays unused.
  std::memset(static_cast<void*>(&record), 0, sizeof record);
  set_name(record.stage, need.stage);
  record.pid = ::getpid();
  record.input = pipe_name(need.input);
  record.output = pipe_name(need.output);
  record.memory = need.memory;
  record.kind = static_cast<std::int32_t>(need.kind);
  record.beside = need.beside;
  record.joined = record.beat = record.last_item = gpu_clock();
  for (const int place : places_)
    record.may |= gpu_bit(place);
  record.used = 1;
  set_places(file().records);
}

void GpuMap::add_gpu(const SharedGpu& gpu, GpuKind kind) {
  GpuFile::Head& head = file().head;
  const std::size_t known = gpus();
  const auto is = [&](const GpuEntry& entry) {
    return std::string_view(entry.name, ::strnlen(entry.name, kGpuName)) == gpu.name;
  };
  const auto end = head.gpu.begin() + static_cast<std::ptrdiff_t>(known);
  const auto at = std::find_if(head.gpu.begin(), end, is);
  places_.push_back(static_cast<int>(at - head.gpu.begin()));
  if (at == end) {
    if (known == kMostGpus)
      fail_usage("programs that share GPUs name more than {}; name fewer with --device", kMostGpus);
    set_name(at->name, gpu.name);
    at->memory = gpu.memory;
    at->sessions = {};
    head.gpus = static_cast<std::int32_t>(known + 1);
  }
  at->memory = std::min(at->memory, gpu.memory);
  std::int32_t& sessions = at->sessions[static_cast<std::size_t>(kind)];
  sessions = sessions == 0 ? gpu.sessions : std::min(sessions, gpu.sessions);
}

void GpuMap::leave() {
  const Locked lock(*this);
  own().left = pipe_clock();
  own().gone = 1;
  for (std::size_t c = 0; c < gpus(); ++c)
    call_for(static_cast<int>(c));
}

void GpuMap::end_dead() {
  for (std::size_t i = 0; i < kGpuRecords; ++i) {
    GpuRecord& record = file().records[i];
    if (!counts(record) || i == own_index_ || shared_.lives(i)) continue;
    record.left = pipe_clock();
    record.gone = 1;
  }
}

bool GpuMap::answers(const GpuRecord& record) const {
  return counts(record) && (&record == &own() || gpu_clock() - record.beat < kAnswers);
}

GpuSet GpuMap::free() const {
  GpuSet set = ~GpuSet{0};
  for (const GpuRecord& record : file().records)
    if (counts(record) && is_compute(record))
      set &= ~gpus_where([&](std::size_t c) { return record.items[c] > 0; });
  return set;
}

/// Returns the memory of the CUDA contexts of programs with sessions.
std::int64_t GpuMap::program_memory(int gpu) const {
  std::int64_t memory = 0;
  for (const GpuRecord& record : file().records)
    if (counts(record) && !is_compute(record) && (record.may & gpu_bit(gpu)) != 0)
      memory += record.memory;
  return memory;
}

std::int64_t GpuMap::model_memory(int gpu) const {
  const GpuEntry& entry = file().head.gpu[static_cast<std::size_t>(gpu)];
  std::int64_t memory = entry.memory - program_memory(gpu);
  for (const GpuKind kind : kSessionKinds) {
    const auto takes = [&](const GpuRecord& record) {
      return counts(record) && is_of(record, kind) && (record.may & gpu_bit(gpu)) != 0;
    };
    if (std::any_of(std::begin(file().records), std::end(file().records), takes))
      memory -= entry.sessions[static_cast<std::size_t>(kind)] * kSessionBytes;
  }
  return memory;
}

std::int64_t GpuMap::loaded_memory(int gpu) const {
  std::int64_t memory = 0;
  for (const GpuRecord& record : file().records)
    if (counts(record) && record.model[static_cast<std::size_t>(gpu)] != GpuModel::none)
      memory += record.memory;
  return memory;
}

/// Returns the sessions in use without those of models (GpuNeed::beside).
int GpuMap::sessions_used(int gpu, GpuKind kind) const {
  int used = 0;
  for (const GpuRecord& record : file().records)
    if (counts(record) && is_of(record, kind)) used += record.items[static_cast<std::size_t>(gpu)];
  return used;
}

std::int64_t GpuMap::session_memory(int gpu) const {
  std::int64_t memory = program_memory(gpu);
  for (const GpuKind kind : kSessionKinds)
    memory += sessions_used(gpu, kind) * kSessionBytes;
  return memory;
}

/// Returns the number of models with a session (GpuNeed::beside), or with `at_work` of those that
/// compute an item.
int GpuMap::beside_models(int gpu, GpuKind kind, bool at_work) const {
  const auto at = static_cast<std::size_t>(gpu);
  const auto has = [&](const GpuRecord& record) {
    const bool there = at_work ? record.items[at] > 0 : record.model[at] != GpuModel::none;
    return counts(record) && (record.beside & gpu_flag(kind)) != 0 && there;
  };
  return static_cast<int>(std::count_if(std::begin(file().records), std::end(file().records), has));
}

int GpuMap::free_sessions(int gpu, GpuKind kind) const {
  const GpuEntry& entry = file().head.gpu[static_cast<std::size_t>(gpu)];
  const int sessions = entry.sessions[static_cast<std::size_t>(kind)] - sessions_used(gpu, kind) -
                       beside_models(gpu, kind, true);
  return fitting_sessions(sessions, entry.memory - loaded_memory(gpu) - session_memory(gpu));
}

int GpuMap::most_sessions(int gpu, GpuKind kind) const {
  const GpuEntry& entry = file().head.gpu[static_cast<std::size_t>(gpu)];
  const int sessions =
      entry.sessions[static_cast<std::size_t>(kind)] - beside_models(gpu, kind, false);
  return fitting_sessions(sessions, entry.memory - loaded_memory(gpu) - program_memory(gpu));
}

std::vector<std::string> GpuMap::names_on(int gpu) const {
  std::vector<std::string> names;
  for (const GpuRecord& record : file().records)
    if (counts(record) && record.model[static_cast<std::size_t>(gpu)] != GpuModel::none)
      names.push_back(
          vfm::format("{} (process {})",
                      std::string_view(record.stage, ::strnlen(record.stage, sizeof record.stage)),
                      record.pid));
  return names;
}

std::vector<GpuClaim> GpuMap::claims(GpuKind kind) const {
  std::vector<GpuClaim> all(kGpuRecords);
  for (std::size_t i = 0; i < kGpuRecords; ++i) {
    const GpuRecord& record = file().records[i];
    if (!answers(record) || !is_of(record, kind)) continue;
    GpuSet ready = record.may & ~record.left_out;
    if (kind == GpuKind::compute) ready &= record.wanted & gpus_with(record, GpuModel::loaded);
    all[i] = {record.place, record.waiting, ready};
  }
  return all;
}

std::vector<GpuPlace> GpuMap::gpu_places() const {
  std::vector<GpuPlace> all;
  for (std::size_t c = 0; c < gpus(); ++c)
    all.push_back({model_memory(static_cast<int>(c))});
  return all;
}

GpuCounts GpuMap::counts_now(const GpuRecord& record, double now) const {
  GpuCounts sums = record.counts;
  for (std::size_t c = 0; c < kMostGpus; ++c)
    if (record.items[c] > 0) sums.busy[c] += record.items[c] * now - record.since[c];
  if (record.waiting > 0) sums.short_of += now - record.waits_since;
  return sums;
}

GpuStage GpuMap::stage_of(const GpuRecord& record, double now) const {
  GpuStage stage;
  stage.place = record.place;
  stage.memory = record.memory;
  stage.may = record.may & ~record.left_out;
  stage.load_seconds = record.load_seconds;
  const GpuSet there = ~gpus_with(record, GpuModel::none);
  if (!answers(record) || record.finished != 0) {
    // Its models are regarded as fixed until they are unloaded.
    stage.may = 0;
    stage.idle = now;
    stage.loaded = stage.fixed = there;
    return stage;
  }
  const GpuSet stays = there & ~record.wanted & gpus_where([&](std::size_t c) {
                         return now - record.unwanted[c] > kUnloads;
                       });
  stage.loaded = record.wanted | stays;
  stage.fixed = gpus_with(record, GpuModel::loading) | stays;
  stage.waiting = record.waiting;
  stage.known = record.load_seconds > 0;
  const bool works = record.waiting > 0 || std::any_of(record.items.begin(), record.items.end(),
                                                       [](int items) { return items > 0; });
  stage.idle = works ? 0 : now - record.last_item;
  return stage;
}

void GpuMap::plan() {
  GpuFile::Head& head = file().head;
  const double now = gpu_clock();
  std::vector<std::size_t> records;
  bool starved = false;
  for (std::size_t i = 0; i < kGpuRecords; ++i) {
    const GpuRecord& record = file().records[i];
    if (!counts(record) || !is_compute(record)) continue;
    records.push_back(i);
    starved = starved || (answers(record) && record.waiting > 0 && record.wanted == 0);
  }
  const double passed = now - head.looked;
  if (passed < (starved ? kLookOfStarved : kLook)) return;
  head.looked = now;
  std::vector<GpuStage> stages;
  std::vector<const GpuAverages*> averages;
  for (const std::size_t i : records) {
    GpuRecord& record = file().records[i];
    record.averages.add(counts_now(record, now), std::min(passed, now - record.joined));
    averages.push_back(&record.averages);
    stages.push_back(stage_of(record, now));
    const auto reads = [&](std::size_t other) {
      return record.output != 0 && file().records[other].input == record.output;
    };
    const auto next = std::find_if(records.begin(), records.end(), reads);
    if (next != records.end()) stages.back().next = static_cast<int>(next - records.begin());
  }
  if (stages.empty() || (now - head.changed < kSettles && !starved)) return;
  const std::vector<GpuSet> plan =
      plan_by_averages(stages, averages, gpu_places(), now - head.changed);
  for (std::size_t s = 0; s < records.size(); ++s) {
    GpuRecord& record = file().records[records[s]];
    const GpuSet wanted = plan[s] & stages[s].may;
    if (wanted == record.wanted || !answers(record) || record.finished != 0) continue;
    for (int c = 0; c < kMostGpus; ++c)
      if ((record.wanted & ~wanted & gpu_bit(c)) != 0)
        record.unwanted[static_cast<std::size_t>(c)] = now;
    record.wanted = wanted;
    call(record.call_keeper, INT_MAX);
  }
}

void GpuMap::call_for(int gpu) {
  const std::vector<GpuClaim> all = claims(GpuKind::compute);
  std::size_t latest = kGpuRecords;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].waiting > 0 && (all[i].ready & gpu_bit(gpu)) != 0 &&
        (latest == kGpuRecords || all[i].place > all[latest].place))
      latest = i;
  if (latest != kGpuRecords) call(file().records[latest].call_items, 1);
  // Threads that wait for sessions may use any GPU.
  for (GpuRecord& record : file().records)
    if (counts(record) && !is_compute(record) && record.waiting > 0) call(record.call_items, 1);
}

}  // namespace vfm::share
