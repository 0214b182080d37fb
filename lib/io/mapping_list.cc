// SPDX-License-Identifier: Apache-2.0
#include "io/mapping_list.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace vfm::io {
namespace {

/// An entry of the list. Entries are reused and never freed, so a signal handler may read them.
struct MappedPlace {
  std::atomic<std::uintptr_t> begin = 0;  // 0 if the entry is free. Set last, cleared first.
  std::atomic<std::size_t> bytes = 0;
  std::array<char, 512> path = {};
};

struct PlaceBlock {
  std::array<MappedPlace, 32> places;
  std::atomic<PlaceBlock*> next = nullptr;
};

PlaceBlock g_first_places;
std::mutex g_places_mutex;  // Only for writers.

template <class Fits>
MappedPlace* find_place(Fits fits) {
  for (PlaceBlock* block = &g_first_places; block; block = block->next)
    for (MappedPlace& place : block->places)
      if (fits(place)) return &place;
  return nullptr;
}

MappedPlace* free_place() {
  const auto is_free = [](const MappedPlace& place) { return place.begin == 0; };
  if (MappedPlace* place = find_place(is_free)) return place;
  PlaceBlock* last = &g_first_places;
  while (last->next)
    last = last->next;
  last->next = new PlaceBlock;
  return &last->next.load()->places.front();
}

}  // namespace

void note_mapping(const void* begin, std::size_t bytes, const std::string& path) {
  const std::lock_guard lock(g_places_mutex);
  MappedPlace* place = free_place();
  const std::size_t most = place->path.size() - 1, size = std::min(most, path.size());
  std::memcpy(place->path.data(), path.data() + (path.size() - size), size);
  place->path[size] = '\0';
  place->bytes = bytes;
  place->begin = reinterpret_cast<std::uintptr_t>(begin);
}

void forget_mapping(const void* begin) noexcept {
  const std::lock_guard lock(g_places_mutex);
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  if (MappedPlace* place = find_place([&](const MappedPlace& one) { return one.begin == at; }))
    place->begin = 0;
}

FileMapping mapping_at(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const MappedPlace* place = find_place([&](const MappedPlace& one) {
    const std::uintptr_t begin = one.begin;
    return begin != 0 && at >= begin && at - begin < one.bytes;
  });
  return place ? FileMapping{place->path.data(), place->bytes} : FileMapping();
}

}  // namespace vfm::io
