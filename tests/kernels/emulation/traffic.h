// Counts what the accesses of a warp cost: wavefronts of shared memory, sectors of global memory.
//
// Lanes make one access together if it is the same place in the program, and came there as often
// since the warp last waited for all its lanes.
// Shared memory has 32 banks of 4 bytes; a wavefront takes one word of each. An access of 4 bytes
// or less is served for all lanes at once, of 8 bytes by halves of the warp, of 16 by quarters;
// each of these takes as many wavefronts as there are different words in the fullest bank. A matrix
// load (ldmatrix) takes eight rows of 16 bytes at once, as quarters do.
// Global memory comes in sectors of 32 bytes; the least number is what the different bytes fill.
// Source: CUDA C++ Programming Guide, "Shared Memory", compute capability 5.x and later; Nsight
// Compute, "Memory Tables".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace vfm::emulation {

struct Traffic {
  std::uint64_t wavefronts = 0, least_wavefronts = 0;
  std::uint64_t sectors = 0, least_sectors = 0;

  void operator+=(const Traffic& other);
};

/// Of one access of a warp: those of 32 lanes that are in `lanes`, `bytes` (at most 16) each.
Traffic shared_access(std::uint32_t lanes, const std::array<std::uintptr_t, 32>& at,
                      std::size_t bytes);
Traffic global_access(std::uint32_t lanes, const std::array<std::uintptr_t, 32>& at,
                      std::size_t bytes);

/// Joins accesses of lanes to those of a block's warps.
class Matcher {
 public:
  void block_begins(unsigned threads);
  /// `place` names an access in the program; `bytes` is always the same there.
  void add(unsigned thread, std::uintptr_t place, bool shared, std::uintptr_t at,
           std::size_t bytes);
  /// All lanes of the warp that have not returned are at one point.
  void warp_synced(unsigned warp);
  /// By places, since the last call, of what is complete.
  std::vector<std::pair<std::uintptr_t, Traffic>> take();

 private:
  struct Joined {
    std::uint32_t lanes = 0;
    std::array<std::uintptr_t, 32> at;
  };
  // Of one warp at one place since the last sync.
  struct Site {
    std::array<std::uint32_t, 32> times{};
    std::vector<Joined> joined;  // by the number of times
    std::size_t used = 0;
  };
  struct Warp {
    std::vector<Site> sites;  // by numbers of places
    std::vector<std::uint32_t> used;
  };
  struct Place {
    std::uintptr_t place = 0;
    bool shared = false;
    std::size_t bytes = 0;
    Traffic sum;
  };
  std::uint32_t& entry(std::uintptr_t place);
  std::uint32_t number(std::uintptr_t place, bool shared, std::size_t bytes);

  std::vector<Warp> warps_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> table_ =
      std::vector<std::uint32_t>(1024);  // by hash: numbers from 1 on, or 0
};

}  // namespace vfm::emulation
