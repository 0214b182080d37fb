// SPDX-License-Identifier: Apache-2.0
#include "matrices.h"

#include <array>
#include <cstring>
#include <vector>

#include "emulation.h"
#include "guard.h"
#include "watch.h"

namespace vfm::emulation {
namespace {

unsigned char* at(SharedAddress address, unsigned alignment) {
  if (address % alignment != 0) stop("an address in shared memory is not aligned");
  return shared_memory() + address;
}

// A row that lane `lane` named in this collective.
const unsigned char* row_of(unsigned lane) {
  SharedAddress row;
  std::memcpy(&row, published(static_cast<int>(lane)), sizeof row);
  return at(row, 16);
}

// The warp reads the row for the lane that names it; and each lane reads what it gets.
void name_row(SharedAddress row, const void* place) {
  watched::transfer(at(row, 16), 16, place);
  watched::touch(at(row, 16), 16, Access::read, place);
  publish(&row, sizeof row);
}
void read_shared(void* to, const unsigned char* from, std::size_t bytes, const void* place) {
  watched::touch(from, bytes, Access::read, place);
  std::memcpy(to, from, bytes);
}

float bf16(unsigned word, int half) {
  const unsigned bits = half == 0 ? word << 16 : word & 0xffff0000u;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

constexpr int kWide = 2;  // elements of a word

struct Copy {
  SharedAddress to;
  const void* from;  // null: zeros
  unsigned bytes;
  int group;
  const void* place;
};
struct Copies {
  std::vector<Copy> started;
  int groups = 0;
};
Copies& copies() {
  static std::array<Copies, kMostThreads> all;
  return all[running_thread()];
}

}  // namespace

SharedAddress shared_address(const void* pointer) {
  return static_cast<SharedAddress>(static_cast<const unsigned char*>(pointer) - shared_memory());
}

Words load_matrices(SharedAddress row) {
  const void* const place = __builtin_return_address(0);
  const unsigned lane = running_thread() % kWarp;
  name_row(row, place);
  Words to;
  for (unsigned m = 0; m < 4; ++m)
    read_shared(&to.w[m], row_of(8 * m + lane / 4) + lane % 4 * 4, 4, place);
  wait_for_warp();
  return to;
}

Words load_transposed(SharedAddress row) {
  const void* const place = __builtin_return_address(0);
  const unsigned lane = running_thread() % kWarp;
  name_row(row, place);
  Words to;
  for (unsigned m = 0; m < 4; ++m)
    for (unsigned half = 0; half < 2; ++half)
      read_shared(reinterpret_cast<unsigned char*>(&to.w[m]) + 2 * half,
                  row_of(8 * m + lane % 4 * 2 + half) + lane / 4 * 2, 2, place);
  wait_for_warp();
  return to;
}

// c + a b, of rows of 16 elements; what a lane holds is told in kernels/ptx/.
Sums multiply_add(Sums c, Words a, unsigned b0, unsigned b1) {
  // Each lane makes numbers of what it gives: a's four words, then b's two.
  float mine[6 * kWide];
  const unsigned words[6] = {a.w[0], a.w[1], a.w[2], a.w[3], b0, b1};
  for (int word = 0; word < 6; ++word)
    for (int i = 0; i < kWide; ++i)
      mine[word * kWide + i] = bf16(words[word], i);
  publish(mine, sizeof mine);
  const int lane = static_cast<int>(running_thread() % kWarp), group = lane / 4, t = lane % 4;
  for (int half = 0; half < 2; ++half)  // of the rows
    for (int part = 0; part < 4; ++part) {
      const float* const left = static_cast<const float*>(published(group * 4 + part));
      const float* const b = static_cast<const float*>(published(2 * t * 4 + part));
      const float* const next_b = static_cast<const float*>(published((2 * t + 1) * 4 + part));
      const float *const upper = left + 2 * half * kWide, *const lower = upper + kWide;
      for (int i = 0; i < kWide; ++i) {
        const int at = (4 + half) * kWide + i;
        c.v[0] += upper[i] * b[at];
        c.v[1] += upper[i] * next_b[at];
        c.v[2] += lower[i] * b[at];
        c.v[3] += lower[i] * next_b[at];
      }
    }
  wait_for_warp();
  return c;
}

void copy_begins(SharedAddress to, const void* from, bool valid, unsigned bytes) {
  const void* const place = __builtin_return_address(0);
  if (reinterpret_cast<std::uintptr_t>(from) % bytes != 0) stop("a copy's source is not aligned");
  watched::transfer(at(to, bytes), bytes, place);
  watched::touch(at(to, bytes), bytes, Access::copy_begins, place);
  if (valid) watched::load_or_store(from, bytes, true, Access::read, place);
  Copies& c = copies();
  c.started.push_back({to, valid ? from : nullptr, bytes, c.groups, place});
}

void copy_commit() {
  ++copies().groups;
}

void copy_wait(int left) {
  Copies& c = copies();
  std::erase_if(c.started, [&](const Copy& copy) {
    if (copy.group >= c.groups - left) return false;
    unsigned char* const to = at(copy.to, copy.bytes);
    watched::touch(to, copy.bytes, Access::copy_ends, copy.place);
    guard::announce(copy.from, copy.bytes);
    if (copy.from != nullptr)
      std::memcpy(to, copy.from, copy.bytes);
    else
      std::memset(to, 0, copy.bytes);
    return true;
  });
}

}  // namespace vfm::emulation
