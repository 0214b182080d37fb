// SPDX-License-Identifier: Apache-2.0
#include "emulation.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace vfm::emulation {
namespace {

constexpr std::size_t kStack = 128 << 10, kMostShared = 227 << 10, kMostExchanged = 64;
constexpr unsigned kWarp = 32;

// A fiber is made once and runs threads for ever. It is entered by ucontext's functions the first
// time and changed to by _setjmp and _longjmp, which spare the system calls for signal masks: they
// would take most of the emulation's time.
struct Fiber {
  jmp_buf at{};
  bool made = false;
  std::unique_ptr<unsigned char[]> stack = std::make_unique<unsigned char[]>(kStack);
  uint3 thread{};
  bool done = false;
  std::array<unsigned char, kMostExchanged> given{};
};

// A barrier opens when all its members that still run have come.
struct Barrier {
  unsigned members = 0, arrived = 0;
  std::uint64_t opened = 0;

  void open_if_complete() {
    if (members == 0 || arrived < members) return;
    arrived = 0;
    ++opened;
    progress() = true;
  }
  static bool& progress() {
    static bool moved = false;
    return moved;
  }
};

struct Block {
  std::vector<Fiber> fibers;
  std::size_t running = 0;  // index into fibers
  jmp_buf scheduler{};
  Barrier all;
  std::vector<Barrier> warps;
  const std::function<void()>* thread = nullptr;
};

Block block;
alignas(1024) std::array<unsigned char, kMostShared> shared;
bool descending = false;

Fiber& self() {
  return block.fibers[block.running];
}
unsigned warp_of(std::size_t fiber) {
  return static_cast<unsigned>(fiber / kWarp);
}

// Both return when something changes back to them.
void yield() {
  if (_setjmp(self().at) == 0) _longjmp(block.scheduler, 1);
}
void fiber_main();
void resume(Fiber& fiber) {
  if (_setjmp(block.scheduler) != 0) return;
  if (fiber.made) _longjmp(fiber.at, 1);
  fiber.made = true;
  static ucontext_t first;
  getcontext(&first);
  first.uc_stack.ss_sp = fiber.stack.get();
  first.uc_stack.ss_size = kStack;
  first.uc_link = nullptr;
  makecontext(&first, fiber_main, 0);
  setcontext(&first);
}

void wait(Barrier& barrier) {
  const std::uint64_t before = barrier.opened;
  ++barrier.arrived;
  barrier.open_if_complete();
  while (barrier.opened == before)
    yield();
}

void fiber_main() {
  for (;;) {
    (*block.thread)();
    self().done = true;
    Barrier::progress() = true;
    --block.all.members;
    block.all.open_if_complete();
    Barrier& warp = block.warps[warp_of(block.running)];
    --warp.members;
    warp.open_if_complete();
    yield();
  }
}

void start(std::size_t index, dim3 size) {
  Fiber& fiber = block.fibers[index];
  fiber.done = false;
  const auto i = static_cast<unsigned>(index);
  fiber.thread = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
}

void run_block(uint3 at, dim3 size, std::size_t shared_bytes) {
  blockIdx = at;
  const std::size_t threads = std::size_t{size.x} * size.y * size.z;
  if (block.fibers.size() < threads) block.fibers.resize(threads);
  block.all = {static_cast<unsigned>(threads), 0, 0};
  block.warps.assign((threads + kWarp - 1) / kWarp, {});
  for (std::size_t i = 0; i < threads; ++i) {
    ++block.warps[warp_of(i)].members;
    start(i, size);
  }
  // What a kernel does not write before it reads must not look like a result.
  std::memset(shared.data(), 0xff, shared_bytes);
  for (std::size_t left = threads; left > 0;) {
    left = 0;
    Barrier::progress() = false;
    for (std::size_t n = 0; n < threads; ++n) {
      block.running = descending ? threads - 1 - n : n;
      if (self().done) continue;
      ++left;
      threadIdx = self().thread;
      resume(self());
    }
    if (left > 0 && !Barrier::progress()) {
      std::fprintf(stderr, "emulation: threads of a block wait for ever\n");
      std::abort();
    }
  }
}

}  // namespace

unsigned char* shared_memory() {
  return shared.data();
}
void wait_for_block() {
  wait(block.all);
}
void wait_for_warp() {
  wait(block.warps[warp_of(block.running)]);
}

void publish(const void* value, std::size_t bytes) {
  if (bytes > kMostExchanged) std::abort();
  std::memcpy(self().given.data(), value, bytes);
  wait_for_warp();
}
const void* published(int lane) {
  return block.fibers[block.running / kWarp * kWarp + static_cast<unsigned>(lane)].given.data();
}
const void* exchange(const void* value, std::size_t bytes, int lane) {
  static std::array<std::array<unsigned char, kMostExchanged>, 1024> received;
  publish(value, bytes);
  auto& mine = received[block.running];
  std::memcpy(mine.data(), published(lane), bytes);
  wait_for_warp();  // nobody gives again before all have read
  return mine.data();
}

void run(dim3 grid, dim3 size, std::size_t shared_bytes, const std::function<void()>& thread) {
  if (shared_bytes > kMostShared || std::size_t{size.x} * size.y * size.z > 1024) {
    std::fprintf(stderr, "emulation: no GPU could launch this\n");
    std::abort();
  }
  block.thread = &thread;
  blockDim = size;
  gridDim = grid;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x)
        run_block({x, y, z}, size, shared_bytes);
  descending = !descending;
}

}  // namespace vfm::emulation
