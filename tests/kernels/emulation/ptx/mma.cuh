// kernels/ptx/mma.cuh for the emulation: what a lane holds is told there.
//
// A copy happens when it is waited for, so that a kernel that reads too early finds old bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../emulation.h"

namespace vfm::kernels {

using SharedAddress = std::uint32_t;

inline SharedAddress shared_address(const void* pointer) {
  return static_cast<SharedAddress>(static_cast<const unsigned char*>(pointer) -
                                    vfm::emulation::shared_memory());
}

namespace emulated {

inline unsigned char* at(SharedAddress address, unsigned alignment) {
  if (address % alignment != 0) {
    std::fprintf(stderr, "emulation: address %u is not aligned to %u\n", address, alignment);
    std::abort();
  }
  return vfm::emulation::shared_memory() + address;
}

// A bf16 of what a lane gave.
inline float element(int lane, int word, int half) {
  const auto* bytes = static_cast<const unsigned char*>(vfm::emulation::published(lane));
  std::uint16_t low;
  std::memcpy(&low, bytes + 4 * word + 2 * half, sizeof low);
  const std::uint32_t bits = std::uint32_t{low} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// A row that lane `lane` named in this collective.
inline const unsigned char* row_of(int lane) {
  SharedAddress row;
  std::memcpy(&row, vfm::emulation::published(lane), sizeof row);
  return at(row, 16);
}

struct Copy {
  SharedAddress to;
  const void* from;  // null: zeros
  unsigned bytes;
  int group;
};
struct Copies {
  std::vector<Copy> started;
  int groups = 0;
};
inline Copies& copies() {
  static std::array<Copies, 1024> all;
  return all[threadIdx.x];
}
inline void start(SharedAddress to, const void* from, bool valid, unsigned bytes) {
  if (reinterpret_cast<std::uintptr_t>(from) % bytes != 0) std::abort();
  Copies& c = copies();
  c.started.push_back({to, valid ? from : nullptr, bytes, c.groups});
}

}  // namespace emulated

inline void load_matrices(unsigned (&to)[4], SharedAddress row) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  vfm::emulation::publish(&row, sizeof row);
  for (int m = 0; m < 4; ++m)
    std::memcpy(&to[m], emulated::row_of(8 * m + lane / 4) + lane % 4 * 4, 4);
  vfm::emulation::wait_for_warp();
}

inline void load_transposed(unsigned (&to)[4], SharedAddress row) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  vfm::emulation::publish(&row, sizeof row);
  for (int m = 0; m < 4; ++m)
    for (int half = 0; half < 2; ++half)
      std::memcpy(reinterpret_cast<unsigned char*>(&to[m]) + 2 * half,
                  emulated::row_of(8 * m + lane % 4 * 2 + half) + lane / 4 * 2, 2);
  vfm::emulation::wait_for_warp();
}

inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const unsigned given[6] = {a[0], a[1], a[2], a[3], b0, b1};
  vfm::emulation::publish(given, sizeof given);
  const int lane = static_cast<int>(threadIdx.x % 32), group = lane / 4, t = lane % 4;
  for (int k = 0; k < 16; ++k) {
    const int left = group * 4 + k % 8 / 2;
    for (int column = 0; column < 2; ++column) {
      const float b = emulated::element((2 * t + column) * 4 + k % 8 / 2, 4 + k / 8, k % 2);
      c[column] += emulated::element(left, k / 8 * 2, k % 2) * b;
      c[2 + column] += emulated::element(left, k / 8 * 2 + 1, k % 2) * b;
    }
  }
  vfm::emulation::wait_for_warp();
}

inline void copy_async_16(SharedAddress to, const void* from, bool valid) {
  emulated::start(to, from, valid, 16);
}
inline void copy_async_8(SharedAddress to, const void* from, bool valid) {
  emulated::start(to, from, valid, 8);
}
inline void copy_async_commit() {
  ++emulated::copies().groups;
}
template <int kLeft>
void copy_async_wait() {
  emulated::Copies& c = emulated::copies();
  std::erase_if(c.started, [&](const emulated::Copy& copy) {
    if (copy.group >= c.groups - kLeft) return false;
    unsigned char* to = emulated::at(copy.to, copy.bytes);
    copy.from ? std::memcpy(to, copy.from, copy.bytes) : std::memset(to, 0, copy.bytes);
    return true;
  });
}

}  // namespace vfm::kernels
