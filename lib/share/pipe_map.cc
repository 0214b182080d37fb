// SPDX-License-Identifier: Apache-2.0
#include "share/pipe_map.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "base/error.h"
#include "share/pipe_places.h"
#include "share/slot_rule.h"

namespace vfm::share {
namespace {

std::string say_slots(int slots) {
  return slots == PipeBoard::kNone ? "those of make" : vfm::format("{} slots", slots);
}

}  // namespace

PipeMap::PipeMap(const std::string& path, int slots, int otherwise, const PipeBoard::Stage& stage)
    : shared_(path, sizeof(PipeFile), {kPipeWords, sizeof kPipeWords}, "VFM_SHARE") {
  const SharedFile::Locked lock(shared_);
  lock.need();
  agree(slots, otherwise, path);
  join(path, stage);
}

// Frees the slots before it sets `gone`: nobody frees slots of a program that is marked as ended.
PipeMap::~PipeMap() {
  free_slots_of(own().used);
  own().left = pipe_clock();
  own().gone = own().used.load();
  if (free() > 0) call_next();
}

/// Sets or checks the number of slots.
void PipeMap::agree(int slots, int otherwise, const std::string& path) {
  std::atomic<std::int32_t>& agreed = file().head.slots;
  if (!end_dead()) {
    // All programs of an earlier pipe have ended.
    for (PipeRecord& record : file().records)
      record.used = 0, record.tokens = 0;
    for (std::atomic<std::uint32_t>& owner : file().owners)
      owner = 0;
    agreed = slots == 0 ? otherwise : slots;
    file().head.lost = 0;  // The tokens were those of an earlier make.
  }
  if (slots != 0 && slots != agreed)
    fail_usage("programs that share '{}' have {}, this one {}; set one VFM_SLOTS for all", path,
               say_slots(agreed), say_slots(slots));
}

/// Takes a record that was never used, or the record whose program left first. Skips records whose
/// programs have left but still hold the lock.
void PipeMap::join(const std::string& path, const PipeBoard::Stage& stage) {
  const auto rank = [&](std::size_t i) {
    const PipeRecord& record = file().records[i];
    return record.used == 0 ? 0 : counts(record) ? UINT64_MAX : record.left.load();
  };
  std::size_t best = kPipeRecords;
  for (std::size_t i = 0; i < kPipeRecords; ++i)
    if (rank(i) < (best == kPipeRecords ? UINT64_MAX : rank(best)) && !shared_.lives(i)) best = i;
  if (best == kPipeRecords || !shared_.live(best))
    fail_usage("{} programs share '{}', as many as can; name another file", kPipeRecords, path);
  own_index_ = best;
  PipeRecord& record = own();
  file().head.lost += record.tokens.exchange(0);
  record.used = 0;  // If the program is killed from here on, the record stays unused.
  std::memset(static_cast<void*>(&record), 0, sizeof record);
  set_pipe_name(record.name, stage.name);
  record.pid = ::getpid();
  record.input = pipe_name(stage.input);
  record.output = pipe_name(stage.output);
  record.joined = pipe_clock();
  record.most = 1;
  if (++file().head.joins == 0) ++file().head.joins;
  record.used = file().head.joins.load();
  input_ = stage.input;
  set_places(file().records);
}

bool PipeMap::end_dead() {
  bool others = false;
  for (std::size_t i = 0; i < kPipeRecords; ++i) {
    PipeRecord& record = file().records[i];
    const std::uint32_t program = record.used;
    if (program == 0 || record.gone == program || i == own_index_) continue;
    if (shared_.lives(i)) {
      others = true;
      continue;
    }
    // Several programs may do this at once. `gone` is set last, in case this program is killed.
    free_slots_of(program);
    record.left = pipe_clock();
    record.gone = program;
  }
  return others;
}

/// The program must take no more slots.
void PipeMap::free_slots_of(std::uint32_t program) {
  for (std::atomic<std::uint32_t>& owner : file().owners)
    if (std::uint32_t has = program; owner == program) owner.compare_exchange_strong(has, 0);
}

void PipeMap::collect_tokens() {
  const auto lost = [](const PipeRecord& r) { return r.used != 0 && !counts(r) && r.tokens != 0; };
  if (std::none_of(std::begin(file().records), std::end(file().records), lost)) return;
  // With the lock, no program that joins can take these records.
  if (!shared_.try_lock()) return;
  for (PipeRecord& record : file().records)
    if (lost(record)) file().head.lost += record.tokens.exchange(0);
  shared_.unlock();
}

bool PipeMap::take_slot() {
  for (int i = 0; i < file().head.slots; ++i)
    if (std::uint32_t nobody = 0; file().owners[i] == 0 && file().owners[i].compare_exchange_strong(
                                                               nobody, own().used.load()))
      return true;
  return false;
}

// Tries further slots if another program takes the slot that was found (pass_by).
void PipeMap::give_slot() {
  const std::uint32_t program = own().used;
  for (int i = 0; i < file().head.slots; ++i)
    if (std::uint32_t has = program;
        file().owners[i] == program && file().owners[i].compare_exchange_strong(has, 0))
      return;
}

int PipeMap::slots_of(const PipeRecord& record) const {
  const std::uint32_t program = record.used;
  int slots = 0;
  for (int i = 0; i < file().head.slots; ++i)
    slots += file().owners[i] == program ? 1 : 0;
  return slots;
}

// Sets the mark before it frees the slots, in case this program is killed, and again afterwards, in
// case the stopped program continues and counts its slots too early.
void PipeMap::pass_by(PipeRecord& record) {
  record.passed_by = 1;
  free_slots_of(record.used);
  record.passed_by = 1;
}

int PipeMap::next() const {
  std::array<SlotClaim, kPipeRecords> claims;
  for (std::size_t i = 0; i < kPipeRecords; ++i)
    if (const PipeRecord& r = file().records[i]; counts(r))
      claims[i] = {r.place, r.held, r.most, r.items, r.help};
  return next_claim(claims);
}

int PipeMap::free() const {
  int free = 0;
  for (int i = 0; i < file().head.slots; ++i)
    free += file().owners[i] == 0 ? 1 : 0;
  return free;
}

void PipeMap::call_next() {
  const int index = next();
  if (index < 0) return;
  PipeRecord& record = file().records[index];
  call(record.items > 0 ? record.call_items : record.call_help, 1);
}

}  // namespace vfm::share
