// SPDX-License-Identifier: Apache-2.0
#include "traffic.h"

#include <algorithm>
#include <utility>

namespace vfm::emulation {
namespace {

constexpr unsigned kLanes = 32, kBanks = 32;
constexpr std::uintptr_t kWord = 4, kSector = 32;

// The wavefronts of the lanes from `first` on that are served at once.
unsigned wavefronts(std::uint32_t lanes, const std::array<std::uintptr_t, 32>& at,
                    std::size_t bytes, unsigned first, unsigned count) {
  std::array<std::array<std::uintptr_t, kLanes>, kBanks> words;
  std::array<unsigned, kBanks> filled{};
  unsigned most = 0;
  for (unsigned lane = first; lane < first + count; ++lane) {
    if ((lanes >> lane & 1u) == 0) continue;
    for (std::uintptr_t word = at[lane] / kWord; word <= (at[lane] + bytes - 1) / kWord; ++word) {
      auto& bank = words[word % kBanks];
      unsigned& size = filled[word % kBanks];
      if (std::find(bank.begin(), bank.begin() + size, word) != bank.begin() + size) continue;
      bank[size++] = word;
      most = std::max(most, size);
    }
  }
  return most;
}

}  // namespace

void Traffic::operator+=(const Traffic& other) {
  wavefronts += other.wavefronts;
  least_wavefronts += other.least_wavefronts;
  sectors += other.sectors;
  least_sectors += other.least_sectors;
}

Traffic shared_access(std::uint32_t lanes, const std::array<std::uintptr_t, 32>& at,
                      std::size_t bytes) {
  const unsigned together = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  Traffic traffic;
  for (unsigned first = 0; first < kLanes; first += together) {
    const unsigned taken = wavefronts(lanes, at, bytes, first, together);
    traffic.wavefronts += taken;
    traffic.least_wavefronts += taken > 0;
  }
  return traffic;
}

Traffic global_access(std::uint32_t lanes, const std::array<std::uintptr_t, 32>& at,
                      std::size_t bytes) {
  std::array<std::uintptr_t, kLanes> sorted;
  unsigned count = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (lanes >> lane & 1u) sorted[count++] = at[lane];
  if (!std::is_sorted(sorted.begin(), sorted.begin() + count))
    std::sort(sorted.begin(), sorted.begin() + count);
  std::uintptr_t different = 0, end = 0, next_sector = 0;
  Traffic traffic;
  for (unsigned i = 0; i < count; ++i) {
    const std::uintptr_t from = std::max(sorted[i], end), to = sorted[i] + bytes;
    if (to <= end) continue;
    different += to - from;
    end = to;
    const std::uintptr_t sector = std::max(from / kSector, next_sector);
    next_sector = (to - 1) / kSector + 1;
    traffic.sectors += next_sector - sector;
  }
  traffic.least_sectors = (different + kSector - 1) / kSector;
  return traffic;
}

void Matcher::block_begins(unsigned threads) {
  warps_.resize(std::max<std::size_t>(warps_.size(), (threads + kLanes - 1) / kLanes));
}

std::uint32_t& Matcher::entry(std::uintptr_t place) {
  const std::size_t mask = table_.size() - 1;
  for (std::size_t i = place * 0x9e3779b97f4a7c15u >> 32;; ++i)
    if (std::uint32_t& one = table_[i & mask]; one == 0 || places_[one - 1].place == place)
      return one;
}

// Each place gets a number when it is first seen.
std::uint32_t Matcher::number(std::uintptr_t place, bool shared, std::size_t bytes) {
  std::uint32_t& known = entry(place);
  if (known != 0) return known - 1;
  places_.push_back({place, shared, bytes, {}});
  const auto count = known = static_cast<std::uint32_t>(places_.size());
  if (2 * count > table_.size()) {
    table_.assign(2 * table_.size(), 0);
    for (std::uint32_t n = 1; n <= count; ++n)
      entry(places_[n - 1].place) = n;
  }
  return count - 1;
}

void Matcher::add(unsigned thread, std::uintptr_t place, bool shared, std::uintptr_t at,
                  std::size_t bytes) {
  const std::uint32_t which = number(place, shared, bytes);
  Warp& warp = warps_[thread / kLanes];
  if (which >= warp.sites.size()) warp.sites.resize(places_.size());
  Site& site = warp.sites[which];
  if (site.used == 0) warp.used.push_back(which);
  const unsigned lane = thread % kLanes, time = site.times[lane]++;
  if (time == site.used) {
    if (time == site.joined.size()) site.joined.emplace_back();
    site.joined[time].lanes = 0;
    ++site.used;
  }
  Joined& joined = site.joined[time];
  joined.lanes |= 1u << lane;
  joined.at[lane] = at;
}

void Matcher::warp_synced(unsigned warp) {
  for (const std::uint32_t which : warps_[warp].used) {
    Place& place = places_[which];
    Site& site = warps_[warp].sites[which];
    const auto count = place.shared ? shared_access : global_access;
    for (std::size_t i = 0; i < site.used; ++i)
      place.sum += count(site.joined[i].lanes, site.joined[i].at, place.bytes);
    site.used = 0;
    site.times.fill(0);
  }
  warps_[warp].used.clear();
}

std::vector<std::pair<std::uintptr_t, Traffic>> Matcher::take() {
  std::vector<std::pair<std::uintptr_t, Traffic>> result;
  for (Place& place : places_)
    if (place.sum.wavefronts + place.sum.sectors > 0)
      result.emplace_back(place.place, std::exchange(place.sum, {}));
  return result;
}

}  // namespace vfm::emulation
