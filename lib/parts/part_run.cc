// SPDX-License-Identifier: Apache-2.0
#include "parts/part_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/xxh3.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "parts/clip_list.h"
#include "parts/part_lease.h"

namespace vfm::parts {
namespace {

constexpr const char* kRun = "/run.json";
constexpr const char* kMarker = "/done.json";
constexpr const char* kFailed = "/failed.json";
constexpr const char* kTemporary = "temporary";

[[noreturn]] void fail_conflict(const std::string& directory, int there, int asked) {
  throw Error(fmt::format("the work of '{}' has {} parts, not {}; leave out the number, or use "
                          "another folder",
                          directory, there, asked),
              ErrorKind::conflict);
}

/// Returns the number of parts. Creates run.json if there is none.
int number_of_parts(io::Store& store, const std::string& directory, const std::string& tool,
                    const PartChoice& choice) {
  std::optional<int> there = count_parts(directory, tool);
  if (!there && tool == kListed)
    fail_usage("'{}' has no list of parts; make it with: vfm-clip list VIDEO... -o {} -n N",
               directory, directory);
  std::optional<int> said = choice.parts;
  if (const std::optional<ClipList> list = read_list(directory); !said && list) said = list->parts;
  if (!there && !said)
    fail_usage(
        "nobody has said how many parts this work has; say it with the part, such as 3/16, env/16 "
        "or auto/16");
  if (!there) {
    const Json run = {{"version", 1}, {"tool", command_of(tool)}, {"parts", *said}};
    store.create(tool + kRun, dump_json(run) + "\n");
    there = count_parts(directory, tool);  // Another command may have created it first.
  }
  if (choice.parts && *choice.parts != *there) fail_conflict(directory, *there, *choice.parts);
  if (choice.part && *choice.part >= *there)
    fail_usage("there is no part {}: '{}' has the parts 0 to {}", *choice.part, directory,
               *there - 1);
  return *there;
}

/// Removes temporary files of outputs, of all processes that had the part.
void remove_temporaries(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove_all(io::join_path(folder, kTemporary), error);
}

/// A part that is done, and of which a process may have left a lease and temporary files.
struct DonePart {
  io::Store& store;
  std::string name, folder;
  LeaseTimes times;

  bool has_leftovers() const {
    const std::vector<std::string> names = store.list(name);
    return std::any_of(names.begin(), names.end(), [](const std::string& each) {
      return each.starts_with("lease-") || each == std::string(kTemporary) + "/";
    });
  }
  /// Returns false if the process of the lease may still work.
  bool tidy(LeaseWatch& watch) const {
    store.sweep(name);
    if (!has_leftovers()) return true;
    const auto lease = PartLease::claim(store, name, times, watch, io::ProcessName::self());
    if (lease) remove_temporaries(folder);
    return lease != nullptr;
  }
};

void pause(double seconds) {
  constexpr double kSlice = 0.1;
  for (double left = seconds; left > 0 && !wind_up_requested(); left -= kSlice) {
    check_stop();
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kSlice)));
  }
  check_stop();
}

}  // namespace

std::string command_of(const std::string& tool) {
  return tool == "plan" ? "vfm-shard plan" : "vfm-" + tool;
}

std::string part_name(int part) {
  return fmt::format("{:05}", part);
}

std::string part_folder(const std::string& directory, const std::string& tool, int part) {
  return io::join_path(directory, "parts/" + tool + "/" + part_name(part));
}

std::optional<int> count_parts(const std::string& directory, const std::string& tool) {
  if (tool == kListed) {
    const std::optional<ClipList> list = read_list(directory);
    return list ? std::optional(list->parts) : std::nullopt;
  }
  const io::FileStore store(io::join_path(directory, "parts"));
  const std::optional<io::Store::Object> object = store.read(tool + kRun);
  if (!object) return std::nullopt;
  const std::string what = "'" + store.path(tool + kRun) + "'";
  const std::int64_t parts = need_integer(parse_json(object->contents, what), "parts", what);
  if (parts < 1 || parts > kMostParts) fail("{} has {} parts", what, parts);
  return static_cast<int>(parts);
}

struct PartRun::State {
  std::string directory, tool;
  PartChoice choice;
  std::shared_ptr<io::FileStore> store;  // of DIR/parts
  io::ProcessName process = io::ProcessName::self();
  LeaseTimes times;
  LeaseWatch watch;
  int parts = 0;
  int at = 0;               // the part at which the next search begins
  std::vector<bool> ended;  // parts that are done, or that this process got
  std::map<int, std::string> digests;

  std::string name(int part) const { return tool + "/" + part_name(part); }
  const std::string& digest(int part, const DigestOf& digest_of) {
    const auto [found, added] = digests.try_emplace(part);
    if (added) found->second = digest_of(part);
    return found->second;
  }
  bool is_done(int part, const DigestOf& digest_of) {
    const std::optional<PartMarker> marker = read_marker(*store, name(part) + kMarker);
    return marker && marker->inputs == digest(part, digest_of);
  }
  void tidy(int part) {
    DonePart{*store, name(part), part_folder(directory, tool, part), times}.tidy(watch);
  }
  std::unique_ptr<Part::State> part_state(int part, const DigestOf& digest_of);
  std::optional<Part> try_claim(int part, const DigestOf& digest_of);
  Part fixed(const DigestOf& digest_of);
  std::optional<Part> any(const DigestOf& digest_of);
};

struct Part::State {
  std::shared_ptr<io::FileStore> store;
  std::string name;  // such as "clip/00003"
  std::string folder, inputs, tool;
  int number = 0, parts = 0;
  io::ProcessName process;
  // In this order: temporary files are removed before another process may claim the part.
  std::unique_ptr<PartLease> lease;  // null if the part is done
  std::unique_ptr<io::TemporaryPlace> temporary;

  /// Removes what processes left that had the part before, and begins work.
  void begin(const std::string& directory) {
    if (store->remove(name + kMarker))
      log_warning("part {} was done with other inputs or settings; it is done again", number);
    store->remove(name + kFailed);
    store->sweep(name);
    remove_temporaries(folder);
    const std::string folders = io::join_path(folder, kTemporary);
    temporary = std::make_unique<io::TemporaryPlace>(
        directory,
        io::join_path(folders, fmt::format("{}-{}", process.name(), lease->generation())));
  }
  void end() {
    temporary.reset();
    if (lease && !lease->lost()) {
      std::error_code error;  // The folder is not empty if another process has the part.
      std::filesystem::remove(io::join_path(folder, kTemporary), error);
    }
    lease.reset();
  }
};

Part::Part(std::unique_ptr<State> state) : state_(std::move(state)) {}
Part::Part(Part&&) noexcept = default;
Part::~Part() {
  if (state_) state_->end();
}

int Part::number() const {
  return state_->number;
}
bool Part::done() const {
  return !state_->lease;
}
const std::string& Part::inputs() const {
  return state_->inputs;
}
const std::string& Part::folder() const {
  return state_->folder;
}
std::string Part::path(std::string_view name) const {
  return io::join_path(state_->folder, name);
}
bool Part::lost() const {
  return state_->lease && state_->lease->lost();
}

void Part::check_lost() const {
  if (!lost()) return;
  const std::optional<LeaseFacts> other = find_lease(*state_->store, state_->name);
  vfm::fail("part {} was taken by {}, as this process showed no sign of life for too long",
            state_->number,
            other ? fmt::format("process {} on {}", other->process.pid, other->process.host)
                  : "another process");
}

void Part::complete(const PartResults& results) {
  const PartMarker marker{command_of(state_->tool), state_->number, state_->parts,
                          state_->inputs,           results,        state_->process.host,
                          state_->lease->begun(),   utc_now()};
  const std::string name = state_->name + kMarker;
  if (!create_marker(*state_->store, name, marker)) {
    const std::optional<PartMarker> there = read_marker(*state_->store, name);
    if (there && there->inputs != marker.inputs)
      vfm::fail(
          "another process completed part {} with other inputs or settings; give the same command "
          "again",
          state_->number);
  }
  state_->end();
}

void Part::fail(const std::string& why) {
  if (!lost()) {
    const Json failed = {{"version", 1},
                         {"host", state_->process.host},
                         {"pid", state_->process.pid},
                         {"begun", state_->lease->begun()},
                         {"ended", utc_now()},
                         {"why", why}};
    state_->store->write(state_->name + kFailed, dump_json(failed) + "\n");
  }
  state_->end();
}

PartRun::PartRun(std::string directory, std::string tool, const PartChoice& choice)
    : state_(std::make_unique<State>()) {
  state_->directory = std::move(directory);
  state_->tool = std::move(tool);
  state_->choice = choice;
  state_->store = std::make_shared<io::FileStore>(io::join_path(state_->directory, "parts"));
  state_->times = LeaseTimes::of(choice.lease_seconds);
  state_->parts = number_of_parts(*state_->store, state_->directory, state_->tool, choice);
  state_->store->sweep(state_->tool);
  state_->ended.resize(static_cast<std::size_t>(state_->parts));
  // Processes begin their search at different parts, so that they seldom try the same one.
  const std::string name = state_->process.name();
  state_->at =
      static_cast<int>(xxh3_64(name.data(), name.size()) % static_cast<unsigned>(state_->parts));
}
PartRun::~PartRun() = default;

int PartRun::parts() const {
  return state_->parts;
}

std::unique_ptr<Part::State> PartRun::State::part_state(int part, const DigestOf& digest_of) {
  std::unique_ptr<Part::State> one(new Part::State);
  one->store = store;
  one->name = name(part);
  one->folder = part_folder(directory, tool, part);
  one->inputs = digest(part, digest_of);
  one->tool = tool;
  one->number = part;
  one->parts = parts;
  one->process = process;
  return one;
}

/// Returns nullopt if another process has the part. Returns the part without a lease if it is done.
std::optional<Part> PartRun::State::try_claim(int part, const DigestOf& digest_of) {
  std::unique_ptr<PartLease> lease = PartLease::claim(*store, name(part), times, watch, process);
  if (!lease) return std::nullopt;
  std::unique_ptr<Part::State> one = part_state(part, digest_of);
  // Another process may have completed the part just before.
  if (!is_done(part, digest_of)) {
    one->lease = std::move(lease);
    one->begin(directory);
  }
  return Part(std::move(one));
}

Part PartRun::State::fixed(const DigestOf& digest_of) {
  const int part = *choice.part;
  if (is_done(part, digest_of)) {
    tidy(part);
    return Part(part_state(part, digest_of));
  }
  for (;;) {
    if (std::optional<Part> mine = try_claim(part, digest_of)) return *std::move(mine);
    const std::optional<LeaseFacts> other = find_lease(*store, name(part));
    if (other && watch.see(name(part), *other) == LeaseWatch::Sign::alive)
      fail("process {} on {} works at part {} since {}; wait for it, or end it", other->process.pid,
           other->process.host, part, other->begun);
    pause(std::min(times.beat / 4, 1.0));
  }
}

std::optional<Part> PartRun::State::any(const DigestOf& digest_of) {
  for (;;) {
    bool waits = false;
    for (int tries = 0; tries < parts; ++tries) {
      const int part = (at + tries) % parts;
      if (ended[static_cast<std::size_t>(part)]) continue;
      check_stop();
      if (wind_up_requested()) return std::nullopt;
      const bool done = is_done(part, digest_of);
      std::optional<Part> mine = done ? std::nullopt : try_claim(part, digest_of);
      if (done) tidy(part);
      waits = waits || (!done && !mine);
      if (!done && !mine) continue;
      ended[static_cast<std::size_t>(part)] = true;
      if (!mine || mine->done()) continue;
      at = (part + 1) % parts;
      return mine;
    }
    if (!waits) return std::nullopt;
    pause(std::min(times.beat / 2, 5.0));
    if (wind_up_requested()) return std::nullopt;
  }
}

void tidy_parts(const std::string& directory, const std::string& tool) {
  io::FileStore store(io::join_path(directory, "parts"));
  LeaseWatch watch;
  const int parts = count_parts(directory, tool).value_or(0);
  for (bool waits = true; waits;) {
    waits = false;
    for (int part = 0; part < parts; ++part) {
      const std::string name = tool + "/" + part_name(part);
      if (!store.facts(name + kMarker)) continue;
      const DonePart done{store, name, part_folder(directory, tool, part), {}};
      if (done.tidy(watch)) continue;
      const std::optional<LeaseFacts> lease = find_lease(store, name);
      waits = waits || (lease && watch.see(name, *lease) != LeaseWatch::Sign::alive);
    }
    if (waits) pause(0.2);
  }
}

std::optional<Part> PartRun::next(const DigestOf& digest_of) {
  if (state_->choice.kind == PartChoice::Kind::automatic) return state_->any(digest_of);
  const auto part = static_cast<std::size_t>(*state_->choice.part);
  if (state_->ended[part]) return std::nullopt;
  state_->ended[part] = true;
  return state_->fixed(digest_of);
}

}  // namespace vfm::parts
