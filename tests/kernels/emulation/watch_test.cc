// What the watch over memory must find, planted: races, memory that is nobody's, bank conflicts and
// sectors; the counts to the last one. And right kernels of the same shape, of which it says
// nothing.
// SPDX-License-Identifier: Apache-2.0
#include "watch.h"

#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <ptx/mma.cuh>
#include <sstream>
#include <string>
#include <vector>

#include "accesses.h"
#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "guard.h"
#include "kernel_test.h"

using namespace vfm::emulation;
using namespace vfm::test;

namespace vfm::kernels {
namespace {

constexpr int kThreads = 128;

// Reversed by way of shared memory.
__global__ void reverse(const float* from, float* to, bool barrier) {
  __shared__ float room[kThreads];
  room[threadIdx.x] = from[threadIdx.x];
  if (barrier) __syncthreads();
  to[threadIdx.x] = room[kThreads - 1 - threadIdx.x];
}

// The buffer is used twice, without a barrier between the last read and the next write.
__global__ void reverse_twice(const float* from, float* to, bool barrier) {
  __shared__ float room[kThreads];
  for (int i = 0; i < 2; ++i) {
    if (barrier) __syncthreads();
    room[threadIdx.x] = from[i * kThreads + threadIdx.x];
    __syncthreads();
    to[i * kThreads + threadIdx.x] = room[kThreads - 1 - threadIdx.x];
  }
}

// Compiled as what nobody sees.
__attribute__((no_sanitize("thread"))) __global__ void unseen(float* to) {
  to[threadIdx.x] = 1;
}

enum class Order { none, shuffle, warp };

// Lanes reverse what their warp has.
__global__ void reverse_in_warps(const float* from, float* to, Order order) {
  __shared__ float room[kThreads];
  room[threadIdx.x] = from[threadIdx.x];
  if (order == Order::warp) __syncwarp();
  if (order == Order::shuffle) __shfl_xor_sync(0xffffffffu, 1.f, 1);
  to[threadIdx.x] = room[threadIdx.x ^ 31u];
}

// The same through the whole block: a warp's barrier is not enough.
__global__ void warp_for_block(const float* from, float* to) {
  __shared__ float room[kThreads];
  room[threadIdx.x] = from[threadIdx.x];
  __syncwarp();
  to[threadIdx.x] = room[kThreads - 1 - threadIdx.x];
}

enum class Waits { as_needed, late, alone };

// Through a copy that goes on beside: read before it is waited for, or before others waited.
__global__ void reverse_copied(const float* from, float* to, Waits waits) {
  float* const room = reinterpret_cast<float*>(vfm::emulation::shared_memory());
  copy_async_16(shared_address(room + 4 * threadIdx.x), from + 4 * threadIdx.x, true);
  copy_async_commit();
  if (waits != Waits::late) copy_async_wait<0>();
  if (waits != Waits::alone) __syncthreads();
  for (int i = 0; i < 4; ++i)
    to[4 * threadIdx.x + i] = room[4 * kThreads - 1 - (4 * threadIdx.x + i)];
  if (waits == Waits::late) copy_async_wait<0>();
}

// Every block adds up all numbers; each may write its own sum, or all the first.
__global__ void sum_all(const float* from, float* to, bool own) {
  __shared__ float room[kThreads / 32];
  const float sum = block_sum<kThreads>(from[threadIdx.x], room);
  if (threadIdx.x == 0) to[own ? blockIdx.x : 0] = sum;
}

__global__ void largest_of_all(const unsigned* from, unsigned* to, bool looks) {
  atomicMax(to, from[blockIdx.x * blockDim.x + threadIdx.x]);
  if (looks && threadIdx.x == 5) to[1] = to[0];
}

// A block reads what its neighbour writes.
__global__ void shift(float* values) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float next = i + 1 < gridDim.x * blockDim.x ? values[i + 1] : 0.f;
  __syncthreads();
  values[i] = next;
}

__global__ void halves(std::uint16_t* to) {
  __shared__ std::uint16_t room[2 * kThreads];
  room[2 * threadIdx.x] = 1;  // two threads of two warps a word, which is no race
  room[(2 * threadIdx.x + kThreads) % (2 * kThreads) + 1] = 2;
  __syncthreads();
  to[threadIdx.x] = room[threadIdx.x];
}

__global__ void beyond(float* to, unsigned asked) {
  float* const room = reinterpret_cast<float*>(vfm::emulation::shared_memory());
  room[threadIdx.x] = 0;
  if (threadIdx.x == 7) room[asked / 4] = 1;
  if (threadIdx.x == 9) to[kThreads] = room[9];
}

// Columns of a tile of 32 x 32 read by a warp, `pitch` elements from row to row.
template <class T>
__global__ void columns(T* to, int pitch) {
  T* const tile = reinterpret_cast<T*>(vfm::emulation::shared_memory());
  for (int row = 0; row < 32; ++row)
    tile[row * pitch + threadIdx.x] = T{};
  __syncwarp();
  for (int column = 0; column < 32; ++column)
    to[column * 32 + threadIdx.x] = tile[threadIdx.x * pitch + column];
}

// All lanes read the same word, and half of them one more.
__global__ void broadcast(float* to) {
  __shared__ float room[2 * kThreads];
  room[threadIdx.x] = 1;
  __syncwarp();
  float sum = room[0];
  if (threadIdx.x % 2 == 0) sum += room[threadIdx.x];
  to[threadIdx.x] = sum;
}

// Eight rows of 16 bytes a matrix, four matrices, `pitch` bytes from row to row.
__global__ void matrices(unsigned* to, unsigned pitch) {
  for (unsigned i = 0; i < pitch * 32; i += 4 * 32)
    reinterpret_cast<unsigned*>(vfm::emulation::shared_memory())[i / 4 + threadIdx.x] = i;
  __syncwarp();
  unsigned words[4];
  load_matrices(words, threadIdx.x * pitch);
  to[threadIdx.x] = words[0] + words[1] + words[2] + words[3];
}

template <class T>
__global__ void strided(const T* from, T* to, int stride) {
  to[threadIdx.x] = from[threadIdx.x * stride];
}

}  // namespace
}  // namespace vfm::kernels

namespace {

using namespace vfm::kernels;

template <class... Parameters, class... Arguments>
void start(void (*kernel)(Parameters...), unsigned blocks, int threads, std::size_t shared,
           Arguments... arguments) {
  need(launch(kernel, dim3(blocks), threads, shared, nullptr, arguments...), "launch");
}

// That faults were told, each part of `parts` in the first; or none at all.
void expect(Checker& checker, const std::string& name, const std::vector<std::string>& parts) {
  const std::vector<std::string> faults = take_faults();
  if (parts.empty())
    return checker.check(name + ": " + (faults.empty() ? "" : faults[0]), faults.empty());
  checker.check(name + " is found", !faults.empty());
  for (const std::string& fault : faults)
    checker.check(fault,
                  &fault == faults.data() || fault.find("did not tell") == std::string::npos);
  for (const std::string& part : faults.empty() ? std::vector<std::string>() : parts)
    checker.check(name + ": no '" + part + "' in: " + faults[0],
                  faults[0].find(part) != std::string::npos);
}

void test_races(Checker& checker) {
  const DeviceArray<float> from(noise(4 * kThreads, 1)), to(4 * kThreads);
  const std::vector<std::string> in_shared = {"race in shared memory", "thread ", "block 0",
                                              "watch_test.cc:",        "reads",   "writes"};
  const auto with = [&](std::string kernel) {
    std::vector<std::string> parts = in_shared;
    parts.push_back(kernel + ": race");
    return parts;
  };
  start(reverse, 1, kThreads, 0, from.get(), to.get(), true);
  expect(checker, "a barrier", {});
  start(reverse, 1, kThreads, 0, from.get(), to.get(), false);
  expect(checker, "a missing __syncthreads", with("reverse"));
  start(reverse_twice, 1, kThreads, 0, from.get(), to.get(), true);
  expect(checker, "a barrier before the next write", {});
  start(reverse_twice, 1, kThreads, 0, from.get(), to.get(), false);
  expect(checker, "a missing __syncthreads before the next write", with("reverse_twice"));
  start(reverse_in_warps, 1, kThreads, 0, from.get(), to.get(), Order::warp);
  expect(checker, "a warp's barrier", {});
  start(reverse_in_warps, 1, kThreads, 0, from.get(), to.get(), Order::none);
  expect(checker, "a missing __syncwarp", with("reverse_in_warps"));
  start(reverse_in_warps, 1, kThreads, 0, from.get(), to.get(), Order::shuffle);
  expect(checker, "a shuffle in the place of __syncwarp", with("reverse_in_warps"));
  start(warp_for_block, 1, kThreads, 0, from.get(), to.get());
  expect(checker, "__syncwarp in the place of __syncthreads", with("warp_for_block"));
  constexpr std::size_t kShared = 16 * kThreads;
  start(reverse_copied, 1, kThreads, kShared, from.get(), to.get(), Waits::as_needed);
  expect(checker, "a copy that is waited for", {});
  start(reverse_copied, 1, kThreads, kShared, from.get(), to.get(), Waits::late);
  expect(checker, "a copy that is read too early", {"race in shared memory", "copies to it"});
  start(reverse_copied, 1, kThreads, kShared, from.get(), to.get(), Waits::alone);
  expect(checker, "a copy that only its thread waited for",
         {"reverse_copied: race in shared memory"});
  const DeviceArray<std::uint16_t> bytes(kThreads);
  start(halves, 1, kThreads, 0, bytes.get());
  expect(checker, "halves of a word", {});
}

void test_races_in_global_memory(Checker& checker) {
  const DeviceArray<float> from(noise(4 * kThreads, 1)), to(4 * kThreads);
  start(sum_all, 3, kThreads, 0, from.get(), to.get(), true);
  expect(checker, "results of their own", {});
  start(sum_all, 1, kThreads, 0, from.get(), to.get(), false);
  expect(checker, "one block", {});
  start(sum_all, 3, kThreads, 0, from.get(), to.get(), false);
  expect(checker, "one result of three blocks",
         {"sum_all: race in global memory, byte 0, 4 bytes: thread 0 of block 1 writes",
          "thread 0 of block 0 writes"});
  start(shift, 1, kThreads, 0, to.get());
  expect(checker, "a shift in a block", {});
  start(shift, 2, kThreads, 0, to.get());
  expect(
      checker, "a shift across blocks",
      {"shift: race in global memory, byte 512,", "block 1 writes", "thread 127 of block 0 reads"});
  const DeviceArray<unsigned> numbers(std::vector<unsigned>(4 * kThreads, 3)), most(2);
  start(largest_of_all, 4, kThreads, 0, numbers.get(), most.get(), false);
  expect(checker, "atomics", {});
  start(largest_of_all, 2, kThreads, 0, numbers.get(), most.get(), true);
  expect(checker, "a plain read beside atomics", {"race in global memory, byte 0", "atomically"});
}

void test_wild_memory(Checker& checker) {
  const DeviceArray<float> to(kThreads);
  start(beyond, 1, kThreads, 4 * kThreads, to.get(), 4 * kThreads);
  const std::vector<std::string> faults = take_faults();
  checker.check("two of them", faults.size() == 2);
  bool shared = false, global = false;
  for (const std::string& fault : faults) {
    const auto has = [&](const char* part) { return fault.find(part) != std::string::npos; };
    shared |= has("not the kernel's: shared memory, byte 512, 4 bytes: thread 7 of block 0 writes");
    global |= has("not the kernel's: global memory, byte 512, 4 bytes: thread 9 of block 0 writes");
  }
  checker.check("beyond shared memory", shared);
  checker.check("beyond an array", global);
  std::vector<float> host(kThreads);
  start(strided<float>, 1, kThreads, 0, host.data(), to.get(), 1);
  expect(checker, "memory of the host", {"not the kernel's: no memory", "reads"});
}

// What one launch of a kernel takes.
void expect_traffic(Checker& checker, const std::string& name, const Traffic& expected) {
  const std::map<std::string, Traffic> all = take_traffic();
  checker.check(name + ": one kernel", all.size() == 1 && take_faults().empty());
  const Traffic got = all.empty() ? Traffic{} : all.begin()->second;
  checker.check(name + ": " + std::to_string(got.wavefronts) + " wavefronts of " +
                    std::to_string(got.least_wavefronts) + ", " + std::to_string(got.sectors) +
                    " sectors of " + std::to_string(got.least_sectors),
                got.wavefronts == expected.wavefronts &&
                    got.least_wavefronts == expected.least_wavefronts &&
                    got.sectors == expected.sectors && got.least_sectors == expected.least_sectors);
}

template <class T>
void compare_columns(Checker& checker, int pitch, Traffic expected) {
  const DeviceArray<T> to(32 * 32);
  take_traffic();
  start(columns<T>, 1, 32, std::size_t{32} * static_cast<unsigned>(pitch) * sizeof(T), to.get(),
        pitch);
  // Results are written in rows: as many sectors as they fill.
  expected.sectors = expected.least_sectors = 32 * 32 * sizeof(T) / 32;
  expect_traffic(
      checker, "columns of " + std::to_string(sizeof(T)) + " bytes, pitch " + std::to_string(pitch),
      expected);
}

void test_traffic(Checker& checker) {
  // 32 rows written and 32 columns read, of one, two and four wavefronts at least.
  compare_columns<float>(checker, 32, {32 + 32 * 32, 64, 0, 0});  // all lanes in one bank
  compare_columns<float>(checker, 33, {64, 64, 0, 0});
  compare_columns<float>(checker, 34, {32 + 32 * 2, 64, 0, 0});     // every other bank
  compare_columns<float2>(checker, 32, {64 + 32 * 32, 128, 0, 0});  // of 16 lanes, all in two banks
  compare_columns<float2>(checker, 33, {128, 128, 0, 0});
  compare_columns<float4>(checker, 32, {128 + 32 * 32, 256, 0, 0});  // of 8 lanes, in four banks
  compare_columns<float4>(checker, 33, {256, 256, 0, 0});
  compare_columns<float4>(checker, 34, {128 + 32 * 4 * 2, 256, 0, 0});
  compare_columns<std::uint16_t>(checker, 32, {32 + 32 * 16, 64, 0, 0});  // two rows are 32 banks
  compare_columns<std::uint16_t>(checker, 34, {32 + 32, 64, 0, 0});

  const DeviceArray<float> from(noise(32 * 32 + 16, 1)), to(32 * 32);
  start(broadcast, 1, 32, 0, to.get());
  expect_traffic(checker, "a broadcast", {3, 3, 4, 4});
  const DeviceArray<unsigned> words(32);
  for (const unsigned pitch : {128u, 16u, 144u, 32u}) {
    start(matrices, 1, 32, pitch * 32, words.get(), pitch);
    // Rows that lie 128 bytes apart are in the same banks: eight wavefronts for one.
    const unsigned each = pitch == 128 ? 8 : pitch == 32 ? 2 : 1, writes = pitch * 32 / 128;
    expect_traffic(checker, "matrices, pitch " + std::to_string(pitch),
                   {writes + 4 * each, writes + 4, 4, 4});
  }
  for (const int stride : {1, 2, 8, 32}) {
    start(strided<float>, 1, 32, 0, from.get(), to.get(), stride);
    const std::uint64_t read = stride >= 8 ? 32 : 4 * stride;
    expect_traffic(checker, "stride " + std::to_string(stride), {0, 0, read + 4, 4 + 4});
  }
  start(strided<float>, 1, 32, 0, from.get() + 1, to.get(), 1);
  expect_traffic(checker, "rows that begin within a sector", {0, 0, 5 + 4, 4 + 4});
  start(strided<float>, 1, 20, 0, from.get(), to.get(), 1);
  expect_traffic(checker, "a warp that is not full", {0, 0, 3 + 3, 3 + 3});
  start(strided<float>, 1, 32, 0, from.get(), to.get(), 0);
  expect_traffic(checker, "one number for all", {0, 0, 1 + 4, 1 + 4});
  const DeviceArray<float4> wide(32 * 32), wide_to(32);
  start(strided<float4>, 1, 32, 0, wide.get(), wide_to.get(), 2);
  expect_traffic(checker, "every other 16 bytes", {0, 0, 32 + 16, 16 + 16});
}

// The table of what accesses cost: a figure that is worse, a kernel that is not in it, and a row of
// no kernel.
void test_table(Checker& checker) {
  const std::string file = "/tmp/vfm-accesses-" + std::to_string(getpid());
  const DeviceArray<float> from(32 * 32), to(32);
  const auto compare = [&](const std::string& rows) {
    std::ofstream(file) << "# a table\n\n" << rows;
    start(strided<float>, 1, 32, 0, from.get(), to.get(), 8);
    const std::vector<std::string> wrong = compare_accesses(file);
    return wrong.empty() ? "" : wrong.size() > 1 ? "several" : wrong[0];
  };
  const std::string row = "  watch  strided<float>\n";  // 36 sectors of 8
  checker.check("as in the table", compare(" 1.00 4.50" + row).empty());
  checker.check("better than in the table", compare("# meant\n 1.00 5.00" + row).empty());
  checker.check(
      "worse than in the table",
      compare(" 1.00 4.00" + row).find("4.50 times the least sectors; accesses.txt says") !=
          std::string::npos);
  checker.check("not in the table", compare("").find("has no row") != std::string::npos);
  checker.check("another program's",
                compare(" 1.00 9.00  other  strided<float>\n").find("no row") != std::string::npos);
  checker.check("in the table, but no more there",
                compare(" 1.00 4.50" + row + " 2.00 1.00  watch  gone\n")
                        .find("a row of gone, which did not run") != std::string::npos);
  setenv("VFM_EMULATION", "write", 1);
  compare("# of another\n 1.00 9.00  other  kernel<1, float>\n# why\n 1.00 4.00" + row +
          " 1.00 4.00  watch  gone\n");
  unsetenv("VFM_EMULATION");
  std::ostringstream written;
  written << std::ifstream(file).rdbuf();
  checker.check("written: " + written.str(),
                written.str() ==
                    "# a table\n\n# of another\n"
                    " 1.00  9.00  other               kernel<1, float>\n# why\n"
                    " 1.00  4.50  watch               strided<float>\n");
  std::remove(file.c_str());
}

void tests(Checker& checker) {
  take_faults();
  watch(true);
  test_races(checker);
  test_races_in_global_memory(checker);
  test_wild_memory(checker);
  take_traffic();
  test_traffic(checker);
  test_table(checker);
  const DeviceArray<float> from(noise(kThreads, 1)), to(kThreads);
  if (guard::stops() > 0) {  // where memory can be guarded
    start(unseen, 1, kThreads, 0, to.get());
    expect(checker, "an access that nobody told of", {"unseen: an access that", "watch_test.cc:"});
  }
  watch(false);
  start(reverse, 1, kThreads, 0, from.get(), to.get(), false);
  expect(checker, "nobody watches", {});
}

}  // namespace

int main() {
  return run(tests);
}
