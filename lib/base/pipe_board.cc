// SPDX-License-Identifier: Apache-2.0
#include "base/pipe_board.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/pipe_map.h"
#include "base/pipe_record.h"
#include "base/stop.h"

namespace vfm {
namespace {

constexpr std::uint64_t kLookForDead = 50'000'000;  // ns

std::string read_name(const char (&from)[32]) {
  return {from, ::strnlen(from, sizeof from)};
}

double in_seconds(std::uint64_t nanoseconds) {
  return static_cast<double>(static_cast<std::int64_t>(nanoseconds)) * 1e-9;
}

/// What does not change together with others is read as it is.
StageState read_record(const PipeRecord& r) {
  StageState s{.name = read_name(r.name), .unit = read_name(r.unit), .pid = r.pid};
  s.alive = r.gone == 0;
  s.draws = r.draws != 0;
  s.most = r.most;
  s.waiting = r.items;
  s.input_bytes = r.input_bytes;
  s.done = r.done;
  const std::uint64_t time = s.alive ? pipe_clock() : r.left.load();
  s.age = in_seconds(time - r.joined);
  // Its times belong together when its version is the same after they are read as before. A
  // program that was killed in between leaves it odd: then they are taken as they are.
  for (int tries = 0; tries < 1000; ++tries) {
    const std::uint32_t version = r.version;
    s.held = r.held;
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
  const PipeMap::Locked lock(*map_);
  map_->own().most = most;
}

bool PipeBoard::acquire(Use use, const std::atomic<bool>* over) {
  const auto count = [&](int by) {
    const std::lock_guard lock(map_->mutex());
    add_waiting(use, by);
  };
  std::atomic<std::uint32_t>& call =
      use == Use::item ? map_->own().call_items : map_->own().call_help;
  count(1);
  bool out_of_turn = false;
  try {
    for (;;) {
      check_stop();
      if (over && *over) break;
      const std::uint32_t seen = call;
      const Taken taken = take(use, out_of_turn);
      if (taken == Taken::yes) return true;
      const std::uint32_t takes = map_->file().head.takes;
      const bool called = wait_for_call(call, seen);
      out_of_turn = !called && taken == Taken::left && takes == map_->file().head.takes;
      look_for_dead();  // where items are short, there may be a call in each turn
    }
  } catch (...) {
    count(-1);
    throw;
  }
  count(-1);
  return false;
}

/// `out_of_turn`: a slot was left to another program, and through a whole turn nobody took any.
PipeBoard::Taken PipeBoard::take(Use use, bool out_of_turn) {
  const PipeMap::Locked lock(*map_);
  const PipeRecord& own = map_->own();
  const int free = map_->free();
  if (free <= 0 || own.held >= own.most) return Taken::no;
  const bool after_items = use == Use::help && own.items > 0;
  if (after_items || map_->next() != map_->own_index()) {
    map_->call_next();  // it may not know
    if (after_items || !out_of_turn) return Taken::left;
  }
  add_waiting(use, -1);
  add_held(1);
  ++map_->file().head.takes;
  if (free > 1) map_->call_next();
  return Taken::yes;
}

/// Once a turn, whichever thread comes.
void PipeBoard::look_for_dead() {
  const PipeMap::Locked lock(*map_);
  const std::uint64_t now = pipe_clock();
  if (now - looked_ < kLookForDead) return;
  looked_ = now;
  map_->end_dead();
  if (map_->free() > 0) map_->call_next();
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
  const PipeMap::Locked lock(*map_);
  add_held(-1);
  map_->call_next();
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
  const PipeMap::Locked lock(*map_);
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
  {
    const PipeMap::Locked lock(*map_);
    map_->end_dead();
    for (const PipeRecord& record : map_->file().records)
      if (record.used != 0) {
        found.emplace_back(record.place, read_record(record));
        found.back().second.self = &record == &map_->own();
      }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<StageState> stages;
  for (auto& [place, stage] : found)
    stages.push_back(std::move(stage));
  return stages;
}

}  // namespace vfm
