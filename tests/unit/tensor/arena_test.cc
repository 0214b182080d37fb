// SPDX-License-Identifier: Apache-2.0
#include "tensor/arena.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "base/philox.h"

using namespace vfm;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::size_t taken = 0, most = 0;
std::set<void*> regions;

void* get(std::size_t bytes) noexcept {
  if (taken + bytes > most) return nullptr;
  taken += bytes;
  void* const region = std::aligned_alloc(512, bytes);
  regions.insert(region);
  return region;
}
void put(void* region, std::size_t /*bytes*/) noexcept {
  regions.erase(region);
  std::free(region);
}
std::size_t same(std::size_t bytes) noexcept {
  return bytes;
}

MemorySource source(std::size_t mebibytes) {
  taken = 0;
  most = mebibytes * kMiB;
  return {get, put, same, ""};
}

}  // namespace

TEST_CASE("what was given back is handed out again, joined with its neighbours") {
  Arena arena(source(64));
  std::vector<std::shared_ptr<void>> parts;
  for (int i = 0; i < 4; ++i)
    parts.push_back(arena.allocate(8 * kMiB));
  CHECK(arena.size() == 32 * kMiB);
  for (int i = 1; i < 4; ++i)
    CHECK(static_cast<std::byte*>(parts[std::size_t(i)].get()) ==
          static_cast<std::byte*>(parts[0].get()) + std::size_t(i) * 8 * kMiB);
  void* const first = parts[0].get();
  parts[0].reset();
  parts[2].reset();
  parts[1].reset();  // joins both
  parts.push_back(arena.allocate(24 * kMiB));
  CHECK(parts.back().get() == first);
  CHECK(arena.size() == 32 * kMiB);
  parts.push_back(arena.allocate(9 * kMiB));  // no room beside the large one
  CHECK(arena.size() == 64 * kMiB);
  CHECK(arena.allocate(33 * kMiB) == nullptr);
  parts.clear();
  arena.release();
  CHECK(regions.empty());
}

TEST_CASE("regions go back when nothing in them is in use") {
  Arena arena(source(1024));
  arena.reserve(100 * kMiB);
  CHECK(arena.size() == 100 * kMiB);
  arena.reserve(50 * kMiB);
  CHECK(arena.size() == 100 * kMiB);
  auto a = arena.allocate(100 * kMiB), b = arena.allocate(1);
  CHECK(regions.size() == 2);
  a.reset();
  arena.release();
  CHECK(regions.size() == 1);
  b.reset();
  arena.release();
  CHECK(regions.empty());
  CHECK(arena.size() == 0);
}

TEST_CASE("regions that are to be kept stay when newer ones go back") {
  Arena arena(source(1024));
  arena.reserve(40 * kMiB);
  auto a = arena.allocate(8 * kMiB);
  arena.keep();
  auto b = arena.allocate(60 * kMiB), c = arena.allocate(50 * kMiB);
  a.reset();
  b.reset();
  arena.release_new();
  CHECK(arena.size() == 90 * kMiB);
  c.reset();
  arena.release_new();
  CHECK(arena.size() == 40 * kMiB);
  a = arena.allocate(1);  // in the region that was kept
  a.reset();
  arena.release_new();
  CHECK(arena.size() == 40 * kMiB);
  arena.release();
  CHECK(regions.empty());
}

TEST_CASE("parts in use never overlap, whatever comes and goes") {
  Arena arena(source(4096));
  const Random random(1, Purpose::test);
  struct Part {
    std::shared_ptr<void> at;
    std::size_t size;
    int mark;
  };
  std::vector<Part> parts;
  for (int i = 0; i < 600; ++i) {
    const auto draw = [&](int what) { return random.bits(std::uint64_t(4 * i + what)); };
    if (parts.size() > 20 || (!parts.empty() && draw(0) % 2 == 0)) {
      const std::size_t which = draw(1) % parts.size();
      for (std::size_t at = 0; at < parts[which].size; at += 509)
        REQUIRE(static_cast<unsigned char*>(parts[which].at.get())[at] ==
                static_cast<unsigned char>(parts[which].mark));
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      const std::size_t size = 1 + draw(2) % (draw(3) % 2 ? 100'000 : 3'000'000);
      parts.push_back({arena.allocate(size), size, i});
      REQUIRE(parts.back().at != nullptr);
      CHECK(reinterpret_cast<std::uintptr_t>(parts.back().at.get()) % 512 == 0);
      std::memset(parts.back().at.get(), i, size);
    }
  }
  parts.clear();
  arena.release();
  CHECK(regions.empty());
}
