// SPDX-License-Identifier: Apache-2.0
#include "parts/part_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <ctime>
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
#include "base/stopwatch.h"
#include "base/units.h"
#include "base/xxh3.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "parts/needed_parts.h"
#include "parts/part_lease.h"
#include "parts/part_notes.h"
#include "parts/parts_ahead.h"
#include "parts/parts_look.h"

namespace vfm::parts {
namespace {

constexpr const char* kMarker = "/done.json";
constexpr const char* kFailed = "/failed.json";
constexpr const char* kTemporary = "temporary";

/// Removes temporary files of outputs, of all processes that had the part. Those of a part in a
/// bucket are in a local folder.
void remove_temporaries(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove_all(io::join_path(io::scratch_folder_of(folder), kTemporary), error);
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
    // The uploads of a bucket are ended for DIR as a whole (io::make_directories()).
    if (!io::is_bucket(folder)) store.sweep(name);
    if (!has_leftovers()) return true;
    const auto lease = PartLease::claim(store, name, times, watch, io::ProcessName::self());
    if (lease) remove_temporaries(folder);
    return lease != nullptr;
  }
};

/// Returns the "crashes" of failed.json.
std::map<std::string, std::int64_t> crashes_before(const io::Store& store,
                                                   const std::string& name) {
  std::map<std::string, std::int64_t> crashes;
  const std::optional<io::Store::Object> found = store.read(name + kFailed);
  if (!found) return crashes;
  const std::string what = "'" + name + kFailed + "'";
  const Json failed = parse_json(found->contents, what), all = failed.value("crashes", Json());
  for (const auto& [input, count] : all.items())
    crashes[input] = need_integer(all, input.c_str(), what);
  return crashes;
}

/// A wait that looks again after longer and longer times, up to half a beat (10 seconds).
struct Wait {
  using Clock = std::chrono::steady_clock;
  LeaseTimes times;
  bool waits = false;
  Clock::time_point since;
  double next = 0;

  void begin() {
    waits = true;
    since = Clock::now();
    next = times.beat / 40;
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - since).count(); }
  void pause() {
    parts::pause(next);
    next = std::min(next * 1.5, times.beat / 2);
  }
};

}  // namespace

std::string part_name(int part) {
  return fmt::format("{:05}", part);
}

std::string part_folder(const std::string& directory, const std::string& tool, int part) {
  return io::join_path(directory, "parts/" + tool + "/" + part_name(part));
}

std::string marker_name(const std::string& tool, int part) {
  return tool + "/" + part_name(part) + kMarker;
}

PartMarker need_marker(const std::string& directory, const std::string& tool, int part) {
  const std::string name = marker_name(tool, part);
  std::optional<PartMarker> marker = read_marker(*open_parts(directory), name);
  if (!marker) fail("'{}' has disappeared", parts_path(directory, name));
  return *std::move(marker);
}

void forget_parts(const std::string& directory, const std::string& tool) {
  const std::unique_ptr<io::Store> store = open_parts(directory);
  const int parts = count_parts(directory, tool).value_or(0);
  const std::vector<bool> marked = marked_parts(*store, directory, tool, parts);
  for (int part = 0; part < parts; ++part) {
    if (!marked[static_cast<std::size_t>(part)]) continue;
    remove_notes(*store, tool, part);
    store->remove(marker_name(tool, part));
  }
}

struct PartRun::State {
  std::string directory, tool;
  PartChoice choice;
  Progress& progress;
  RunFile file;
  std::shared_ptr<io::Store> store;  // of DIR/parts
  io::ProcessName process = io::ProcessName::self();
  LeaseTimes times;
  LeaseWatch watch;
  bool took_one = false;  // by Kind::next
  std::optional<PartsLook> recent;  // of a bucket, while it answers for the parts that are tried
  Stopwatch looked;                 // since `recent` was made
  std::optional<NeededParts> needs;
  std::optional<PartsAhead> ahead;
  Wait wait;
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
    const std::optional<PartMarker> marker = read_marker_facts(*store, name(part) + kMarker);
    return marker && marker->inputs == digest(part, digest_of);
  }
  /// In a bucket, makes one listing instead of a request for each part that is tried.
  void look_at_bucket() {
    constexpr double kRecent = 30;  // seconds
    if (!io::is_bucket(directory) || (recent && looked.seconds() < kRecent)) return;
    recent.emplace(*store, directory, tool);
    looked = Stopwatch();
  }
  /// Returns whether the part has a marker, in a bucket as the last listing says.
  bool is_marked(int part) const {
    if (recent) return recent->done(part);
    return store->facts(name(part) + kMarker).has_value();
  }
  void tidy(int part) {
    if (recent && !recent->newest_lease(part)) return;
    DonePart{*store, name(part), part_folder(directory, tool, part), times}.tidy(watch);
  }
  std::unique_ptr<Part::State> part_state(int part, const DigestOf& digest_of);
  std::optional<Part> try_claim(int part, const DigestOf& digest_of);
  bool is_ready(int part) { return !needs || needs->are_done(part); }
  void await_needs(const std::vector<int>& parts_in_need);
  bool await_room(int part);
  std::optional<Part> fixed(const DigestOf& digest_of);
  std::optional<Part> try_part(int part, const DigestOf& digest_of, bool& busy);
  std::optional<Part> any(const DigestOf& digest_of);
  std::optional<Part> find_free(const std::vector<bool>& noted, bool& unknown,
                                const DigestOf& digest_of);
  std::optional<Part> one(const DigestOf& digest_of);
};

struct Part::State {
  std::shared_ptr<io::Store> store;
  std::string name;  // such as "clip/00003"
  std::string folder, inputs, tool;
  int number = 0, parts = 0;
  io::ProcessName process;
  std::string node_kind;
  Stopwatch watch;
  std::string temporary_folder;
  // In this order: temporary files are removed before another process may claim the part.
  std::unique_ptr<PartLease> lease;  // null if the part is done
  std::unique_ptr<io::TemporaryPlace> temporary;
  std::map<std::string, std::int64_t> crashes;  // of inputs, in earlier processes

  /// Removes what processes left that had the part before, and begins work.
  void begin(const std::string& directory) {
    if (store->facts(name + kMarker)) remove_notes(*store, tool, number);
    if (store->remove(name + kMarker))
      log_warning("part {} was done with other inputs; it is done again", number);
    crashes = crashes_before(*store, name);
    if (crashes.empty()) store->remove(name + kFailed);
    store->sweep(name);
    remove_temporaries(folder);
    const std::string folders = io::join_path(io::scratch_folder_of(folder), kTemporary);
    temporary_folder =
        io::join_path(folders, fmt::format("{}-{}", process.name(), lease->generation()));
    temporary = std::make_unique<io::TemporaryPlace>(directory, temporary_folder);
    if (io::is_bucket(directory)) io::make_directories(temporary_folder);
  }
  void end() {
    temporary.reset();
    if (!temporary_folder.empty() && io::is_bucket(folder)) {
      std::error_code error;  // The system removes what remains in TMPDIR.
      std::filesystem::remove_all(temporary_folder, error);
      io::remove_if_empty(io::dir_name(temporary_folder));
      io::remove_if_empty(io::dir_name(io::dir_name(temporary_folder)));
    } else if (lease && !lease->lost()) {
      // The folder is not empty if another process has the part.
      io::remove_if_empty(io::join_path(folder, kTemporary));
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
const std::string& Part::temporary() const {
  return state_->temporary_folder;
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

io::Fault Part::judged(io::Fault fault) const {
  const auto before = state_->crashes.find(fault.input);
  if (fault.cause != Cause::crash || before == state_->crashes.end() ||
      before->second + 1 < kMostCrashes)
    return fault;
  fault.cause = Cause::decode;
  fault.message +=
      fmt::format("; it has crashed the decoder {} times, and counts as a bad input", kMostCrashes);
  return fault;
}

/// A part without a note is done, too. Only the choice of a node's next part takes longer then.
static void note_if_possible(io::Store& store, const std::string& tool, const PartMarker& marker) {
  try {
    write_note(store, tool, {marker.part, std::time(nullptr), marker.seconds, marker.node_kind});
  } catch (const Error& error) {
    log_warning("cannot note that part {} is done: {}", marker.part, error.what());
  }
}

void Part::complete(const PartResults& results) {
  PartMarker marker{command_of(state_->tool), state_->number, state_->parts,
                    state_->inputs,           results,        state_->process.host};
  marker.begun = state_->lease->begun();
  marker.ended = utc_now();
  marker.node_kind = state_->node_kind;
  marker.seconds = state_->watch.seconds();
  const std::string name = state_->name + kMarker;
  if (create_marker(*state_->store, name, marker)) {
    note_if_possible(*state_->store, state_->tool, marker);
  } else {
    const std::optional<PartMarker> there = read_marker_facts(*state_->store, name);
    if (there && there->inputs != marker.inputs)
      vfm::fail("another process completed part {} with other inputs; give the same command again",
                state_->number);
  }
  if (!state_->crashes.empty()) state_->store->remove(state_->name + kFailed);
  state_->end();
}

void Part::fail(const std::string& why, const std::set<std::string>& crashed) {
  if (!lost()) {
    for (const std::string& input : crashed)
      ++state_->crashes[input];
    const Json failed = {{"version", 1},
                         {"host", state_->process.host},
                         {"pid", state_->process.pid},
                         {"begun", state_->lease->begun()},
                         {"ended", utc_now()},
                         {"why", why},
                         {"crashes", Json(state_->crashes)}};
    state_->store->write(state_->name + kFailed, dump_json(failed) + "\n");
  }
  state_->end();
}

PartRun::PartRun(std::string directory, std::string tool, const PartChoice& choice,
                 const RunTerms& terms, bool all_clips, Progress& progress)
    : state_(new State{std::move(directory), std::move(tool), choice, progress}) {
  State& run = *state_;
  run.file = agree_on_run(run.directory, run.tool, choice, terms);
  run.store = open_leases(run.directory);
  run.times = LeaseTimes::of(choice.lease_seconds);
  run.wait.times = run.times;
  run.store->sweep(run.tool);
  sweep_notes(*run.store, run.tool);
  if (run.file.of_clips) run.needs.emplace(terms.clips, run.file, all_clips);
  if (choice.waiting) run.ahead.emplace(run.directory, run.tool);
  run.ended.resize(static_cast<std::size_t>(run.file.parts));
  // Processes begin their search at different parts, so that they seldom try the same one.
  const std::string name = run.process.name();
  run.at =
      static_cast<int>(xxh3_64(name.data(), name.size()) % static_cast<unsigned>(run.file.parts));
}
PartRun::~PartRun() = default;

const RunFile& PartRun::file() const {
  return state_->file;
}

std::unique_ptr<Part::State> PartRun::State::part_state(int part, const DigestOf& digest_of) {
  std::unique_ptr<Part::State> one(new Part::State);
  one->store = store;
  one->name = name(part);
  one->folder = part_folder(directory, tool, part);
  one->inputs = digest(part, digest_of);
  one->tool = tool;
  one->number = part;
  one->parts = file.parts;
  one->process = process;
  one->node_kind = choice.node_kind;
  return one;
}

/// Returns nullopt if another process has the part. Returns the part without a lease if it is done.
std::optional<Part> PartRun::State::try_claim(int part, const DigestOf& digest_of) {
  std::unique_ptr<PartLease> lease =
      PartLease::claim(*store, name(part), times, watch, process, choice.node_kind);
  if (!lease) return std::nullopt;
  std::unique_ptr<Part::State> one = part_state(part, digest_of);
  // Another process may have completed the part just before.
  if (!is_done(part, digest_of)) {
    one->lease = std::move(lease);
    one->begin(directory);
  }
  return Part(std::move(one));
}

/// Waits for a moment. Throws Error if the run does not wait for these parts, or did for too long.
void PartRun::State::await_needs(const std::vector<int>& parts_in_need) {
  const bool moved = needs->have_moved(parts_in_need);
  if (moved || !wait.waits) wait.begin();
  if (!choice.follow) fail("{}", needs->missing(parts_in_need));
  if (wait.seconds() > *choice.follow)
    fail("{}; none of them has moved for {}", needs->missing(parts_in_need),
         format_seconds(*choice.follow));
  progress.place("waits: " + needs->missing(parts_in_need));
  wait.pause();
}

/// Waits until the programs that follow have done enough, or another process has done the part.
/// Returns false if the run winds up.
bool PartRun::State::await_room(int part) {
  if (!ahead) return true;
  Wait room{times};
  for (room.begin(); !wind_up_requested(); room.pause()) {
    const std::uint64_t bytes = ahead->bytes();
    if (bytes <= *choice.waiting || store->facts(name(part) + kMarker)) return true;
    progress.place(fmt::format("waits for the programs that follow, which have not done {}",
                               format_bytes(static_cast<double>(bytes))));
  }
  return false;
}

std::optional<Part> PartRun::State::fixed(const DigestOf& digest_of) {
  const int part = *choice.part;
  while (!is_ready(part)) {
    await_needs({part});
    if (wind_up_requested()) return std::nullopt;
  }
  progress.place("");
  if (is_done(part, digest_of)) {
    tidy(part);
    return Part(part_state(part, digest_of));
  }
  for (;;) {
    if (std::optional<Part> mine = try_claim(part, digest_of)) return mine;
    const std::optional<LeaseFacts> other = find_lease(*store, name(part));
    if (other && watch.see(name(part), *other) == LeaseWatch::Sign::alive)
      fail("process {} on {} works at part {} since {}; wait for it, or end it", other->process.pid,
           other->process.host, part, other->begun);
    pause(std::min(times.beat / 4, 1.0));
    if (wind_up_requested()) return std::nullopt;
  }
}

/// Returns the part if it is this process's now. Sets `busy` if another process has it.
std::optional<Part> PartRun::State::try_part(int part, const DigestOf& digest_of, bool& busy) {
  check_stop();
  const bool done = (!recent || recent->done(part)) && is_done(part, digest_of);
  busy = !done;
  if (!done && !await_room(part)) return std::nullopt;
  std::optional<Part> mine = done ? std::nullopt : try_claim(part, digest_of);
  if (done) tidy(part);
  busy = !done && !mine;
  if (busy) return std::nullopt;
  ended[static_cast<std::size_t>(part)] = true;
  if (!mine || mine->done()) return std::nullopt;
  at = (part + 1) % file.parts;
  wait.waits = false;
  progress.place("");
  return mine;
}

std::optional<Part> PartRun::State::any(const DigestOf& digest_of) {
  std::vector<int> in_need, others;  // parts that other processes have
  bool busy = false;
  look_at_bucket();
  for (int tries = 0; tries < file.parts; ++tries) {
    const int part = (at + tries) % file.parts;
    if (ended[static_cast<std::size_t>(part)]) continue;
    if (wind_up_requested()) return std::nullopt;
    if (!is_ready(part)) {
      in_need.push_back(part);
      continue;
    }
    if (std::optional<Part> mine = try_part(part, digest_of, busy)) return mine;
    if (busy) others.push_back(part);
  }
  recent.reset();
  // At the end, a thousand processes may wait for a thousand parts. A file system could not bear
  // that each watches all of them, so each watches a few, and then others.
  constexpr std::ptrdiff_t kWatched = 16;
  Stopwatch watched;
  bool some_done = false;  // of those that were looked at last
  while (!others.empty() || !in_need.empty()) {
    if (others.empty())
      await_needs(in_need);
    else if (!some_done)
      pause(std::min(times.beat / 2, 5.0));
    if (wind_up_requested()) return std::nullopt;
    const auto end = others.begin() + std::min<std::ptrdiff_t>(kWatched, std::ssize(others));
    std::vector<int> few(others.begin(), end), still;
    others.erase(others.begin(), end);
    for (const int part : few) {
      if (std::optional<Part> mine = try_part(part, digest_of, busy)) return mine;
      if (busy) still.push_back(part);
    }
    some_done = still.size() < few.size();
    const bool long_enough = watched.seconds() >= times.patience + times.beat;
    others.insert(long_enough ? others.end() : others.begin(), still.begin(), still.end());
    if (long_enough) watched = Stopwatch();
    for (const int part : std::exchange(in_need, {})) {
      if (!is_ready(part)) {
        in_need.push_back(part);
        continue;
      }
      if (std::optional<Part> mine = try_part(part, digest_of, busy)) return mine;
      if (busy) others.push_back(part);
    }
  }
  return std::nullopt;
}

/// Returns a part that has no marker and no living process. Passes over those with `noted`. Sets
/// `unknown` if a process that has a part may be dead.
std::optional<Part> PartRun::State::find_free(const std::vector<bool>& noted, bool& unknown,
                                              const DigestOf& digest_of) {
  for (int tries = 0; tries < file.parts; ++tries) {
    const int part = (at + tries) % file.parts;
    if (noted[static_cast<std::size_t>(part)]) continue;
    check_stop();
    if (wind_up_requested()) return std::nullopt;
    if (is_marked(part) || !is_ready(part)) continue;
    std::optional<Part> mine = try_claim(part, digest_of);
    if (mine && !mine->done()) return mine;
    const std::optional<LeaseFacts> other = find_lease(*store, name(part));
    if (other && watch.see(name(part), *other) != LeaseWatch::Sign::alive) unknown = true;
  }
  return std::nullopt;
}

std::optional<Part> PartRun::State::one(const DigestOf& digest_of) {
  if (std::exchange(took_one, true)) return std::nullopt;
  look_at_bucket();
  std::vector<bool> noted(static_cast<std::size_t>(file.parts));
  for (const PartNote& note : recent ? recent->notes() : read_notes(*store, tool))
    if (note.part < file.parts) noted[static_cast<std::size_t>(note.part)] = true;
  bool unknown = false;
  if (std::optional<Part> mine = find_free(noted, unknown, digest_of)) return mine;
  noted.assign(noted.size(), false);
  for (;; pause(std::min(times.beat / 4, 1.0))) {
    unknown = false;
    if (recent) recent->refresh();
    if (std::optional<Part> mine = find_free(noted, unknown, digest_of)) return mine;
    if (wind_up_requested()) return std::nullopt;
    if (!unknown) break;
  }
  throw Error(
      fmt::format("{} has no part to do in '{}': each is done, worked at, or without its input",
                  command_of(tool), directory),
      ErrorKind::no_part);
}

void tidy_parts(const std::string& directory, const std::string& tool) {
  const std::unique_ptr<io::Store> store = open_parts(directory);
  LeaseWatch watch;
  PartsLook look(*store, directory, tool);
  const int parts = count_parts(directory, tool).value_or(0);
  for (bool waits = true; waits; look.refresh()) {
    waits = false;
    for (int part = 0; part < parts; ++part) {
      const std::string name = tool + "/" + part_name(part);
      if (!look.done(part) || (look.is_listed() && !look.newest_lease(part))) continue;
      const DonePart done{*store, name, part_folder(directory, tool, part), {}};
      if (done.tidy(watch)) continue;
      const std::optional<LeaseFacts> lease = find_lease(*store, name);
      waits = waits || (lease && watch.see(name, *lease) != LeaseWatch::Sign::alive);
    }
    if (waits) pause(0.2);
  }
}

std::optional<Part> PartRun::next(const DigestOf& digest_of) {
  if (state_->choice.kind == PartChoice::Kind::automatic) return state_->any(digest_of);
  if (state_->choice.kind == PartChoice::Kind::next) return state_->one(digest_of);
  const auto part = static_cast<std::size_t>(*state_->choice.part);
  if (state_->ended[part]) return std::nullopt;
  std::optional<Part> mine = state_->fixed(digest_of);
  if (!mine)
    throw Error(fmt::format("part {} is not done: SIGUSR1 ended the wait", part),
                ErrorKind::no_part);
  state_->ended[part] = true;
  return mine;
}

}  // namespace vfm::parts
