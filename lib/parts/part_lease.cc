// SPDX-License-Identifier: Apache-2.0
#include "parts/part_lease.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "parts/part_marker.h"

namespace vfm::parts {
namespace {

std::string path_of(const std::string& folder, const LeaseName& name) {
  return folder + "/" + name.text();
}

/// Creates a lease. Returns false if there is one of this name.
bool create_lease(io::Store& store, const std::string& path, const std::string& contents) {
  try {
    return store.create(path, contents);
  } catch (const Error&) {
    // What came after the lease had its name may have failed, such as writing the folder to disk.
    const std::optional<io::Store::Object> there = store.read(path);
    if (!there || there->contents != contents) throw;
    return true;
  }
}

LeaseFacts read_facts(const std::string& text, const std::string& what) {
  const Json json = parse_json(text, what);
  LeaseFacts facts;
  facts.process = {need_string(json, "host", what),
                   static_cast<long>(need_integer(json, "pid", what)),
                   get_string(json, "machine").value_or("")};
  facts.node_kind = get_string(json, "node_kind").value_or("");
  facts.begun = need_string(json, "begun", what);
  facts.times = {need_number(json, "beat_seconds", what), need_number(json, "patience", what)};
  return facts;
}

}  // namespace

std::string LeaseName::text() const {
  return fmt::format("lease-{}-{}", generation, beat);
}

std::optional<LeaseName> parse_lease_name(std::string_view text) {
  constexpr std::string_view kBegin = "lease-";
  if (!text.starts_with(kBegin)) return std::nullopt;
  LeaseName name;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data() + kBegin.size(), end, name.generation);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, name.beat);
  return second.ec == std::errc() && second.ptr == end ? std::optional(name) : std::nullopt;
}

std::vector<LeaseName> leases_of(const io::Store& store, const std::string& folder) {
  std::vector<LeaseName> names;
  for (const std::string& text : store.list(folder))
    if (const auto name = parse_lease_name(text)) names.push_back(*name);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<LeaseFacts> read_lease(const io::Store& store, const std::string& folder,
                                     const LeaseName& name) {
  const std::string path = path_of(folder, name);
  const std::optional<io::Store::Object> object = store.read(path);
  if (!object) return std::nullopt;
  LeaseFacts facts = read_facts(object->contents, "the lease '" + path + "'");
  facts.generation = name.generation;
  facts.beat = name.beat;
  return facts;
}

void pause(double seconds) {
  constexpr double kSlice = 0.1;
  for (double left = seconds; left > 0 && !wind_up_requested(); left -= kSlice) {
    check_stop();
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kSlice)));
  }
  check_stop();
}

LeaseTimes LeaseTimes::of(std::optional<double> lease_seconds) {
  if (!lease_seconds) return {};
  return {*lease_seconds, 3 * *lease_seconds};
}

std::optional<LeaseFacts> find_lease(const io::Store& store, const std::string& folder) {
  // The file of a beat is removed after the next beat. A listing may be some seconds old.
  constexpr int kTries = 7;
  for (int tries = 0; tries < kTries; ++tries) {
    if (tries > 0) pause(0.05 * (1 << tries));
    const std::vector<LeaseName> names = leases_of(store, folder);
    if (names.empty()) return std::nullopt;
    if (auto facts = read_lease(store, folder, names.back())) return facts;
  }
  fail("the leases in '{}' change too often to be read; VFM_LEASE_SECONDS may be too small",
       folder);
}

LeaseWatch::Sign LeaseWatch::see(const std::string& folder, const LeaseFacts& lease) {
  if (lease.process.is_gone()) return Sign::dead;
  const auto now = Clock::now();
  Seen& seen = seen_[folder];
  // A later process may have a lease of the same name.
  std::string holder = fmt::format("{} {} {}", lease.generation, lease.process.name(), lease.begun);
  if (seen.holder != holder || seen.beat != lease.beat) {
    // The first sight of a lease says nothing.
    seen.changed = seen.holder == holder;
    seen.holder = std::move(holder);
    seen.beat = lease.beat;
    seen.since = now;
  } else if (std::chrono::duration<double>(now - seen.since).count() > lease.times.patience) {
    return Sign::dead;
  }
  return seen.changed ? Sign::alive : Sign::unknown;
}

namespace {

/// Returns whether there is a lease besides the new one, `own`, that is not `before`. What a
/// process sees may be old: after `before`, others may have had leases and ended them, and one may
/// have a lease now.
bool is_held_by_other(const io::Store& store, const std::string& folder, const LeaseName& own,
                      const std::optional<LeaseFacts>& before) {
  std::vector<LeaseName> names = leases_of(store, folder);
  std::erase(names, own);
  if (names.empty()) return false;
  if (!before || names.back() != LeaseName{before->generation, before->beat}) return true;
  const std::optional<LeaseFacts> now = read_lease(store, folder, names.back());
  if (!now) return false;  // The one that was dead has ended its lease.
  return now->begun != before->begun || now->process.name() != before->process.name();
}

}  // namespace

struct PartLease::State {
  io::Store& store;
  std::string folder;
  LeaseTimes times;
  io::ProcessName process;
  std::string node_kind;
  LeaseName name;  // the newest beat
  std::string begun = utc_now();
  std::atomic<bool> lost{false};
  std::mutex mutex;
  std::condition_variable ended;
  bool ends = false;
  std::thread thread;

  std::string contents() const {
    return dump_json({{"host", process.host},
                      {"pid", process.pid},
                      {"machine", process.machine},
                      {"node_kind", node_kind},
                      {"begun", begun},
                      {"beat_seconds", times.beat},
                      {"patience", times.patience}}) +
           "\n";
  }

  /// Returns false if another process has taken the folder.
  bool beat() {
    const std::vector<LeaseName> there = leases_of(store, folder);
    if (there.empty() || there.back() != name) return false;
    const LeaseName next{name.generation, name.beat + 1};
    if (!create_lease(store, path_of(folder, next), contents())) return false;
    const LeaseName before = std::exchange(name, next);
    if (before.beat > 0) store.remove(path_of(folder, before));
    return true;
  }

  void beat_until_end() {
    using Clock = std::chrono::steady_clock;
    auto last = Clock::now();
    for (;;) {
      {
        std::unique_lock lock(mutex);
        const std::chrono::duration<double> wait(times.beat);
        if (ended.wait_for(lock, wait, [&] { return ends; })) return;
      }
      try {
        if (!beat()) break;
        last = Clock::now();
      } catch (const Error& error) {
        log_warning("cannot renew the lease of '{}': {}", folder, error.what());
        if (std::chrono::duration<double>(Clock::now() - last).count() > times.patience) break;
      } catch (const Stopped&) {
        return;  // The disk is full, or a signal came. The run ends.
      }
    }
    lost = true;
  }

  void end() {
    {
      const std::lock_guard lock(mutex);
      ends = true;
    }
    ended.notify_all();
    if (thread.joinable()) thread.join();
    if (lost) {
      store.remove(path_of(folder, name));
      return;
    }
    // Older generations may have left a beat while this one began. The first file of the generation
    // goes last, because it excludes other claims of the generation.
    std::vector<LeaseName> names = leases_of(store, folder);
    std::erase_if(names, [&](const LeaseName& each) { return each.generation > name.generation; });
    const LeaseName first{name.generation, 0};
    for (const LeaseName& each : names)
      if (each != first) store.remove(path_of(folder, each));
    store.remove(path_of(folder, first));
  }
};

std::unique_ptr<PartLease> PartLease::claim(io::Store& store, const std::string& folder,
                                            const LeaseTimes& times, LeaseWatch& watch,
                                            const io::ProcessName& process,
                                            const std::string& node_kind) {
  const std::optional<LeaseFacts> there = find_lease(store, folder);
  if (there && watch.see(folder, *there) != LeaseWatch::Sign::dead) return nullptr;
  const LeaseName name{there ? there->generation + 1 : 1, 0};
  std::unique_ptr<State> state(new State{store, folder, times, process, node_kind, name});
  if (!create_lease(store, path_of(folder, name), state->contents())) return nullptr;
  std::unique_ptr<PartLease> lease(new PartLease(std::move(state)));
  if (is_held_by_other(store, folder, name, there)) {
    lease->state_->lost = true;
    return nullptr;
  }
  for (const LeaseName& each : leases_of(store, folder))
    if (each.generation < name.generation) store.remove(path_of(folder, each));
  watch.forget(folder);
  lease->state_->thread = std::thread([&mine = *lease->state_] { mine.beat_until_end(); });
  return lease;
}

PartLease::PartLease(std::unique_ptr<State> state) : state_(std::move(state)) {}

PartLease::~PartLease() {
  try {
    state_->end();
  } catch (const Error& error) {
    log_warning("cannot end the lease of '{}': {}", state_->folder, error.what());
  } catch (const Stopped&) {  // The run ends, and others see that the lease does not change.
  }
}

int PartLease::generation() const {
  return state_->name.generation;
}

const std::string& PartLease::begun() const {
  return state_->begun;
}

bool PartLease::lost() const {
  return state_->lost;
}

}  // namespace vfm::parts
