// SPDX-License-Identifier: Apache-2.0
#include "base/pipe_map.h"

#include <unistd.h>

#include <array>
#include <cstring>
#include <iterator>
#include <vector>

#include "base/error.h"
#include "base/pipe_places.h"
#include "base/slot_rule.h"

namespace vfm {
namespace {

std::string say_slots(int slots) {
  return slots == PipeBoard::kNone ? "those of make" : vfm::format("{} slots", slots);
}

}  // namespace

PipeMap::PipeMap(const std::string& path, int slots, int otherwise, const PipeBoard::Stage& stage)
    : shared_(path, sizeof(PipeFile), {kPipeWords, sizeof kPipeWords}, "--share") {
  const Locked lock(*this);
  agree(slots, otherwise, path);
  join(path, stage);
}

PipeMap::~PipeMap() {
  const Locked lock(*this);
  own().left = pipe_clock();
  own().gone = 1;
  own().held = 0;
  if (free() > 0) call_next();
}

/// On the number of slots.
void PipeMap::agree(int slots, int otherwise, const std::string& path) {
  std::atomic<std::int32_t>& agreed = file().head.slots;
  if (!end_dead()) {
    // Nothing of an earlier pipe is left.
    for (PipeRecord& record : file().records)
      record.used = 0;
    agreed = slots == 0 ? otherwise : slots;
    file().head.lost = 0;  // of another make, which has noticed
  }
  if (slots != 0 && slots != agreed)
    fail_usage("programs that share '{}' have {}, this one {}; set one VFM_SLOTS for all", path,
               say_slots(agreed), say_slots(slots));
}

/// Takes a record that was never used, or the one that is out of use longest. A program that has
/// left still holds its own for a moment.
void PipeMap::join(const std::string& path, const PipeBoard::Stage& stage) {
  const auto rank = [&](std::size_t i) {
    const PipeRecord& record = file().records[i];
    return record.used == 0 ? 0 : record.gone != 0 ? record.left.load() : UINT64_MAX;
  };
  std::size_t best = kPipeRecords;
  for (std::size_t i = 0; i < kPipeRecords; ++i)
    if (rank(i) < (best == kPipeRecords ? UINT64_MAX : rank(best)) && !shared_.lives(i)) best = i;
  if (best == kPipeRecords || !shared_.live(best))
    fail_usage("{} programs share '{}', as many as can; name another file", kPipeRecords, path);
  own_index_ = best;
  PipeRecord& record = own();
  record.used = 0;  // a kill from here on leaves a record that nobody has
  std::memset(static_cast<void*>(&record), 0, sizeof record);
  set_pipe_name(record.name, stage.name);
  record.pid = ::getpid();
  record.input = pipe_name(stage.input);
  record.output = pipe_name(stage.output);
  record.joined = pipe_clock();
  record.most = 1;
  record.used = 1;
  input_ = stage.input;
  set_places();
}

void PipeMap::set_places() {
  std::array<PipeEnds, kPipeRecords> programs;
  for (std::size_t i = 0; i < kPipeRecords; ++i) {
    const PipeRecord& record = file().records[i];
    programs[i] = {record.used != 0, record.pid, record.input, record.output};
  }
  const std::vector<int> places = pipe_places(programs);
  for (std::size_t i = 0; i < kPipeRecords; ++i)
    if (programs[i].used) file().records[i].place = places[i];
}

bool PipeMap::end_dead() {
  bool others = false;
  for (std::size_t i = 0; i < kPipeRecords; ++i) {
    PipeRecord& record = file().records[i];
    if (!counts(record) || i == own_index_) continue;
    if (shared_.lives(i)) {
      others = true;
      continue;
    }
    record.left = pipe_clock();
    record.gone = 1;
    record.held = record.items = record.help = 0;
    file().head.lost += record.tokens.exchange(0);
  }
  return others;
}

int PipeMap::next() const {
  std::array<SlotClaim, kPipeRecords> claims;
  for (std::size_t i = 0; i < kPipeRecords; ++i)
    if (const PipeRecord& r = file().records[i]; counts(r))
      claims[i] = {r.place, r.held, r.most, r.items, r.help};
  return next_claim(claims);
}

int PipeMap::free() const {
  int free = file().head.slots;
  for (const PipeRecord& record : file().records)
    if (counts(record)) free -= record.held;
  return free;
}

void PipeMap::call_next() {
  const int index = next();
  if (index < 0) return;
  PipeRecord& record = file().records[index];
  call(record.items > 0 ? record.call_items : record.call_help, 1);
}

}  // namespace vfm
