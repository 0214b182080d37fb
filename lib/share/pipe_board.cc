// SPDX-License-Identifier: Apache-2.0
#include "share/pipe_board.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "share/pipe_lock.h"
#include "share/pipe_map.h"
#include "share/pipe_record.h"

namespace vfm::share {
namespace {

constexpr std::uint64_t kTurnsALook = 10;  // turns between looks for stopped programs
constexpr int kLooksUntilPassed = 4;       // two seconds

double in_seconds(std::uint64_t nanoseconds) {
  return static_cast<double>(static_cast<std::int64_t>(nanoseconds)) * 1e-9;
}

StageState read_record(const PipeRecord& r) {
  StageState s{.name = pipe_name_text(r.name), .unit = pipe_name_text(r.unit), .pid = r.pid.load()};
  s.alive = counts(r);
  s.stopped = s.alive && is_stopped(s.pid);
  s.draws = r.draws != 0;
  s.most = r.most;
  s.waiting = s.alive ? r.items.load() : 0;
  s.input_bytes = r.input_bytes;
  s.done = r.done;
  const std::uint64_t time = s.alive ? pipe_clock() : r.left.load();
  s.age = in_seconds(time - r.joined);
  // The times are consistent if the version is even and has not changed during the reading. After a
  // kill the version can stay odd: then the last reading is used.
  for (int tries = 0; tries < 1000; ++tries) {
    const std::uint32_t version = r.version;
    s.held = s.alive ? r.held.load() : 0;
    s.input_seconds = in_seconds(r.input_waits.at(time));
    s.output_seconds = in_seconds(r.output_waits.at(time));
    s.slot_seconds = in_seconds(r.slot_waits.at(time));
    s.busy_seconds = in_seconds(r.busy.at(time));
    if (version % 2 == 0 && version == r.version) break;
  }
  return s;
}

}  // namespace

PipeBoard::PipeBoard(const std::string& path, int slots, int otherwise, const Stage& stage)
    : map_(std::make_unique<PipeMap>(path, slots, otherwise, stage)) {}

PipeBoard::~PipeBoard() = default;

int PipeBoard::slots() const {
  return map_->file().head.slots;
}

void PipeBoard::set_most(int most) {
  map_->own().most = most;
}

bool PipeBoard::acquire(Use use, const std::atomic<bool>* over) {
  const auto count = [&](int by) {
    const std::lock_guard lock(map_->mutex());
    add_waiting(use, by);
  };
  std::atomic<std::uint32_t>& call =
      use == Use::item ? map_->own().call_items : map_->own().call_help;
  bool waited = false;
  return take_in_turn(call, map_->file().head.takes, over, count, [&](bool out_of_turn) {
    // Also after a call, since with short items every turn may have a call.
    if (std::exchange(waited, true)) look_for_dead();
    return take(use, out_of_turn);
  });
}

Taken PipeBoard::take(Use use, bool out_of_turn) {
  const std::lock_guard lock(map_->mutex());
  const PipeRecord& own = map_->own();
  if (own.held >= own.most || map_->free() <= 0) return Taken::no;
  const bool after_items = use == Use::help && own.items > 0;
  if (after_items || map_->next() != map_->own_index()) {
    map_->call_next();  // The next program may not know that a slot is free.
    if (after_items || !out_of_turn) return Taken::left;
  }
  if (!map_->take_slot()) return Taken::no;  // another program was quicker
  add_waiting(use, -1);
  add_held(1);
  ++map_->file().head.takes;
  // After add_waiting(-1): programs that gave slots back before it have called this program, which
  // passes the call on.
  if (map_->free() > 0) map_->call_next();
  return Taken::yes;
}

/// Looks at most once in kSharedTurn.
void PipeBoard::look_for_dead() {
  std::vector<std::string> stopped;
  {
    const std::lock_guard lock(map_->mutex());
    const std::uint64_t now = pipe_clock();
    if (now - looked_ < kSharedTurn) return;
    looked_ = now;
    map_->end_dead();
    map_->collect_tokens();
    if (map_->free() > 0) map_->call_next();
    if (++turns_ % kTurnsALook == 0) stopped = look_for_stopped();
  }
  for (const std::string& words : stopped)
    log_warning("{}", words);
}

/// If this program lacks slots, frees the slots of programs that were stopped at kLooksUntilPassed
/// looks, unless the slots are make's. Returns a warning for each program. Counts looks and not
/// seconds, so that a pipe that is stopped as a whole loses no slots when it continues.
std::vector<std::string> PipeBoard::look_for_stopped() {
  std::vector<std::string> words;
  stopped_looks_.resize(kPipeRecords);
  const PipeRecord& own = map_->own();
  const bool of_make = slots() == kNone;
  const bool lacks = of_make || (own.held < own.most && map_->free() <= 0);
  for (std::size_t i = 0; i < kPipeRecords; ++i) {
    PipeRecord& r = map_->file().records[i];
    const std::int64_t pid = r.pid;
    const int keeps = !lacks || !counts(r) ? 0 : of_make ? r.held.load() : map_->slots_of(r);
    stopped_looks_[i] = keeps > 0 && is_stopped(pid) ? stopped_looks_[i] + 1 : 0;
    if (of_make ? stopped_looks_[i] != kLooksUntilPassed : stopped_looks_[i] < kLooksUntilPassed)
      continue;
    const std::string name = vfm::format("{} (process {})", pipe_name_text(r.name), pid);
    if (of_make) {
      words.push_back(
          vfm::format("{} is stopped and keeps {} of make's slots; 'kill -CONT {}' lets it go on",
                      name, keeps, pid));
      continue;
    }
    map_->pass_by(r);
    stopped_looks_[i] = 0;
    words.push_back(
        vfm::format("{} is stopped: others have its {} of the shared slots until 'kill -CONT {}'",
                    name, keeps, pid));
  }
  if (!words.empty() && map_->free() > 0) map_->call_next();
  return words;
}

void PipeBoard::add_held(int by) {
  const PipeMap::Changing changing(map_->own());
  map_->own().held += by;
  map_->own().busy.add(by, pipe_clock());
}

void PipeBoard::add_waiting(Use use, int by) {
  const PipeMap::Changing changing(map_->own());
  (use == Use::item ? map_->own().items : map_->own().help) += by;
  if (use == Use::item) map_->own().slot_waits.add(by, pipe_clock());
}

void PipeBoard::release() noexcept {
  const std::lock_guard lock(map_->mutex());
  // A slot that another program took while this program was stopped is not given back.
  if (map_->slots_of(map_->own()) >= map_->own().held) map_->give_slot();
  add_held(-1);
  map_->call_next();
}

bool PipeBoard::owes() const {
  PipeRecord& own = map_->own();
  if (own.passed_by.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(map_->mutex());
  own.passed_by = 0;  // before the count, since a program that takes a slot later sets it again
  const bool owes = map_->slots_of(own) < own.held;
  if (owes) own.passed_by = 1;
  return owes;
}

bool PipeBoard::wanted() const {
  return std::any_of(
      std::begin(map_->file().records), std::end(map_->file().records),
      [](const PipeRecord& r) { return counts(r) && r.items > 0 && r.held < r.most; });
}

void PipeBoard::show_waiting(int by) noexcept {
  const std::lock_guard lock(map_->mutex());
  add_waiting(Use::item, by);
}

void PipeBoard::show_held(int by) noexcept {
  const std::lock_guard lock(map_->mutex());
  add_held(by);
}

void PipeBoard::show_tokens(int by) noexcept {
  map_->own().tokens += by;
}

int PipeBoard::take_lost_tokens() noexcept {
  look_for_dead();
  return map_->file().head.lost.exchange(0);
}

void PipeBoard::start(std::string_view unit) {
  set_pipe_name(map_->own().unit, unit);
  map_->own().done = 0;
}

void PipeBoard::set_draws(bool draws) noexcept {
  map_->own().draws = draws ? 1 : 0;
}

void PipeBoard::add_done(std::uint64_t done) noexcept {
  map_->own().done += done;
}

void PipeBoard::begin_wait(Wait wait) noexcept {
  int bytes = 0;
  const std::lock_guard lock(map_->mutex());
  PipeRecord& own = map_->own();
  if (wait == Wait::input && own.input != 0 && ::ioctl(map_->input(), FIONREAD, &bytes) == 0)
    own.input_bytes = bytes;
  const PipeMap::Changing changing(own);
  (wait == Wait::input ? own.input_waits : own.output_waits).add(1, pipe_clock());
}

void PipeBoard::end_wait(Wait wait) noexcept {
  const std::lock_guard lock(map_->mutex());
  const PipeMap::Changing changing(map_->own());
  (wait == Wait::input ? map_->own().input_waits : map_->own().output_waits).add(-1, pipe_clock());
}

std::vector<StageState> PipeBoard::stages() const {
  std::vector<std::pair<int, StageState>> found;
  map_->end_dead();
  for (const PipeRecord& record : map_->file().records)
    if (record.used != 0) {
      found.emplace_back(record.place, read_record(record));
      StageState& stage = found.back().second;
      stage.self = &record == &map_->own();
      if (slots() != kNone) stage.held = std::min(stage.held, map_->slots_of(record));
    }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<StageState> stages;
  for (auto& [place, stage] : found)
    stages.push_back(std::move(stage));
  return stages;
}

}  // namespace vfm::share
