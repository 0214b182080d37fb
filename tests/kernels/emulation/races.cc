// SPDX-License-Identifier: Apache-2.0
#include "races.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "emulation.h"
#include "watch.h"

namespace vfm::emulation {
namespace {

constexpr std::uint32_t kNever = ~0u;  // a time before which no barrier opens

inline bool of_one_warp(const Mark& a, const Mark& b) {
  return a.block == b.block && a.thread / kWarp == b.thread / kWarp;
}

inline bool same_moment(const Mark& a, const Mark& b) {
  return a.block == b.block && a.time == b.time && a.thread == b.thread && a.access == b.access;
}

}  // namespace

void Shadow::Free::operator()(Cell* cells) const {
  std::free(cells);
}

// Pages that nothing is written to take no memory.
Shadow::Cells Shadow::make(std::size_t count) {
  Cells cells(static_cast<Cell*>(std::calloc(count, sizeof(Cell))));
  if (cells == nullptr) stop("no memory to watch memory with");
  return cells;
}

Shadow::Shadow(std::size_t bytes) : bytes_(bytes), cells_(make((bytes >> shift_) + 1)) {}

// Cells of half as many bytes: both have the marks of the one that they were.
void Shadow::refine() {
  const std::size_t count = (bytes_ >> shift_) + 1;
  Cells finer = make(2 * count);
  const Cell nothing{};
  for (std::size_t i = 0; i < count; ++i)
    if (std::memcmp(&cells_[i], &nothing, sizeof nothing) != 0)
      finer[2 * i] = finer[2 * i + 1] = cells_[i];
  cells_ = std::move(finer);
  --shift_;
}

void Races::launch_begins() {
  first_block_ = block_ + 1;
}
void Races::block_begins(unsigned threads) {
  ++block_;
  time_ = synced_ = 0;
  warps_synced_.assign((threads + kWarp - 1) / kWarp, 0);
}
void Races::block_synced() {
  synced_ = ++time_;
  std::fill(warps_synced_.begin(), warps_synced_.end(), time_);
}
void Races::warp_synced(unsigned warp) {
  warps_synced_[warp] = ++time_;
}

// Nothing that is done from now on races with it.
inline bool Races::over(const Mark& mark) const {
  return mark.block < first_ || (mark.block == block_ && mark.time < synced_);
}

inline bool Races::races(const Mark& mark, const Mark& now) const {
  if (over(mark)) return false;
  if (mark.block != block_ || mark.access == Access::copy_begins) return true;
  if (mark.thread == now.thread) return false;
  return !of_one_warp(mark, now) || mark.time >= warp_synced_;
}

inline void Races::note_read(Shadow::Cell& cell, const Mark& now) const {
  Mark &one = cell.read, &other = cell.other_read;
  if (over(one)) {
    one = over(other) ? now : other;
    other = {};
    if (one.thread == now.thread && one.block == now.block) return;
  }
  if (of_one_warp(one, now) && !races(one, now)) {
    one = now;
    if (of_one_warp(other, now) && !races(other, now)) other = {};
  } else if (over(other) || of_one_warp(other, now) || of_one_warp(other, one)) {
    other = now;  // but two of different warps stay
  }
}

// What the access races with, if anything.
inline const Mark* Races::touch_cell(Shadow::Cell& cell, const Mark& now) const {
  static Mark found;
  // Read again, and nothing came between.
  if (now.access == Access::read && same_moment(cell.read, now)) return nullptr;
  const auto check = [&](const Mark& mark) {
    if (!races(mark, now)) return false;
    found = mark;
    return true;
  };
  bool race = false;
  switch (now.access) {
    case Access::copy_ends:  // seen when it began; from now on it is the thread's own write
      cell.write = now;
      break;
    case Access::read:
    case Access::atomic:
      race = check(cell.write) || (cell.read.access != now.access && check(cell.read)) ||
             (cell.other_read.access != now.access && check(cell.other_read));
      note_read(cell, now);
      break;
    case Access::write:
    case Access::copy_begins:
      race = check(cell.write) || check(cell.read) || check(cell.other_read);
      cell.write = now;
      if (now.access == Access::copy_begins) cell.write.time = kNever;
      cell.read = cell.other_read = {};
      break;
  }
  return race ? &found : nullptr;
}

std::optional<Mark> Races::touch(Shadow& shadow, bool shared, std::size_t at, std::size_t bytes,
                                 unsigned thread, Access access, std::uint32_t place) {
  const Mark now = {block_, time_, place, static_cast<std::uint16_t>(thread), access};
  first_ = shared ? block_ : first_block_;
  warp_synced_ = warps_synced_[thread / kWarp];
  while (((at | bytes) & ((std::size_t{1} << shadow.shift_) - 1)) != 0)
    shadow.refine();
  const Mark* race = nullptr;
  const std::size_t end = (at + bytes) >> shadow.shift_;
  for (std::size_t i = at >> shadow.shift_; i < end; ++i)
    if (const Mark* const with = touch_cell(shadow.cells_[i], now)) race = with;
  return race == nullptr ? std::nullopt : std::optional<Mark>(*race);
}

}  // namespace vfm::emulation
