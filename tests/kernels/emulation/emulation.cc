// SPDX-License-Identifier: Apache-2.0
#undef _FORTIFY_SOURCE  // jumps between stacks are meant
#include "emulation.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "guard.h"
#include "watch.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

// From shared.ld: where the __shared__ variables of all kernels are.
extern unsigned char vfm_shared_begin[], vfm_variables_end[], vfm_shared_end[];

namespace vfm::emulation {
namespace {

constexpr std::size_t kStack = 128 << 10, kMostShared = 227 << 10, kMostExchanged = 128;

// A barrier opens when all its members that still run have come.
struct Barrier {
  unsigned members = 0, arrived = 0;
  std::uint64_t opened = 0;

  bool open_if_complete() {
    if (members == 0 || arrived < members) return false;
    arrived = 0;
    ++opened;
    return true;
  }
};

struct Fiber {
  jmp_buf resume;
  bool started = false, done = false;
  const Barrier* waits_for = nullptr;
  std::uint64_t since = 0;  // how often that had opened
  uint3 thread{};
  alignas(16) std::array<unsigned char, kMostExchanged> given;

  bool ready() const { return !done && (waits_for == nullptr || waits_for->opened != since); }
};

struct Warp {
  Barrier barrier;
  unsigned lanes = 0, ready = 0;
};

struct RunningBlock {
  std::vector<Fiber> fibers;
  unsigned threads = 0, running = 0;  // running: an index into fibers
  jmp_buf scheduler;
  Barrier barrier;
  std::vector<Warp> warps;
  const std::function<void()>* thread = nullptr;
};

RunningBlock now;  // the running one
// Directly behind the variables.
alignas(4096)
    __attribute__((section("vfm_dynamic_shared"))) unsigned char dynamic_shared[kMostShared];

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* const given = std::getenv("VFM_EMULATION_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  }();
  return value;
}
void say_seed() {
  std::fprintf(stderr, "emulation: VFM_EMULATION_SEED=%llu repeats the order of the threads\n",
               static_cast<unsigned long long>(seed()));
}

Fiber& self() {
  return now.fibers[now.running];
}
Warp& own_warp() {
  return now.warps[now.running / kWarp];
}

// Lanes that waited may go on.
void let_go(Warp& warp) {
  warp.ready = warp.barrier.members;
}
void block_opened() {
  for (Warp& warp : now.warps)
    let_go(warp);
  watched::block_synced();
}
void warp_opened(Warp& warp, bool orders_memory) {
  let_go(warp);
  watched::warp_synced(static_cast<unsigned>(&warp - now.warps.data()), orders_memory);
}

void yield_to_scheduler(const Barrier& barrier) {
  Fiber& fiber = self();
  fiber.waits_for = &barrier;
  fiber.since = barrier.opened;
  --own_warp().ready;
  if (_setjmp(fiber.resume) == 0) _longjmp(now.scheduler, 1);
}

void end_thread() {
  Fiber& fiber = self();
  fiber.done = true;
  Warp& warp = own_warp();
  --warp.ready;
  --warp.barrier.members;
  --now.barrier.members;
  if (warp.barrier.open_if_complete()) warp_opened(warp, false);
  if (now.barrier.open_if_complete()) block_opened();
  if (_setjmp(fiber.resume) == 0) _longjmp(now.scheduler, 1);
}

// One thread after the other, each of another block.
void fiber_main() {
  for (;;) {
    (*now.thread)();
    end_thread();
  }
}

void prepare(unsigned index, dim3 size) {
  Fiber& fiber = now.fibers[index];
  fiber.done = false;
  fiber.waits_for = nullptr;
  fiber.thread = {index % size.x, index / size.x % size.y, index / (size.x * size.y)};
}

void resume(unsigned index) {
  now.running = index;
  Fiber& fiber = now.fibers[index];
  threadIdx = fiber.thread;
  if (_setjmp(now.scheduler) != 0) return;
  if (fiber.started) _longjmp(fiber.resume, 1);
  // Only to get onto the stack: a change of context asks the system each time, a jump does not.
  fiber.started = true;
  static ucontext_t begin;
  getcontext(&begin);
  begin.uc_stack.ss_sp = all_stacks().begin + index * kStack;
  begin.uc_stack.ss_size = kStack;
  begin.uc_link = nullptr;
  makecontext(&begin, fiber_main, 0);
  setcontext(&begin);
}

// Each lane that is ready goes on, from one of chance on and with a stride of chance.
void run_warp(unsigned index) {
  const unsigned draw = chance(), first = draw % kWarp, stride = draw / kWarp % kWarp | 1u;
  const unsigned lanes = now.warps[index].lanes;
  for (unsigned i = 0; i < kWarp; ++i) {
    const unsigned lane = (first + i * stride) % kWarp;
    if (lane < lanes && now.fibers[index * kWarp + lane].ready()) resume(index * kWarp + lane);
  }
}

void run_block(uint3 at, dim3 size, std::size_t shared_bytes) {
  blockIdx = at;
  now.threads = size.x * size.y * size.z;
  now.barrier = {now.threads, 0, 0};
  now.warps.assign((now.threads + kWarp - 1) / kWarp, {});
  for (unsigned i = 0; i < now.threads; ++i) {
    Warp& warp = now.warps[i / kWarp];
    ++warp.barrier.members, ++warp.lanes, ++warp.ready;
    prepare(i, size);
  }
  guard::lift();
  // What a kernel does not write before it reads must not look like a result.
  std::memset(dynamic_shared, 0xff, shared_bytes);
  std::memset(vfm_shared_begin, 0xff,
              static_cast<std::size_t>(vfm_variables_end - vfm_shared_begin));
  guard::lower();
  watched::block_begins();
  const auto warps = static_cast<unsigned>(now.warps.size());
  while (now.barrier.members > 0) {
    unsigned warp = chance() % warps, looked_at = 0;
    for (; looked_at < warps && now.warps[warp].ready == 0; ++looked_at)
      warp = warp + 1 == warps ? 0 : warp + 1;
    if (looked_at == warps) stop("threads of a block wait for ever");
    run_warp(warp);
  }
  watched::block_ends();
}

}  // namespace

void stop(const char* why) {
  std::fprintf(stderr, "emulation: %s\n", why);
  say_seed();
  std::abort();
}

unsigned chance() {
  static std::mt19937 engine = [] {
    on_exit(
        [](int status, void*) {
          if (status != 0 && status != 77) say_seed();
        },
        nullptr);
    return std::mt19937(static_cast<std::mt19937::result_type>(seed()));
  }();
  return static_cast<unsigned>(engine());
}

unsigned char* shared_memory() {
  return dynamic_shared;
}
Bytes all_shared_memory() {
  return {vfm_shared_begin, static_cast<std::size_t>(vfm_shared_end - vfm_shared_begin)};
}
Bytes all_stacks() {
  static const Bytes stacks = [] {
    constexpr std::size_t kSize = kStack * kMostThreads;
    void* const room = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) stop("no memory for the threads' stacks");
    return Bytes{static_cast<unsigned char*>(room), kSize};
  }();
  return stacks;
}
unsigned running_thread() {
  return now.running;
}

void wait_for_block() {
  ++now.barrier.arrived;
  if (now.barrier.open_if_complete())
    block_opened();
  else
    yield_to_scheduler(now.barrier);
}
void wait_for_warp(bool orders_memory) {
  Warp& warp = own_warp();
  ++warp.barrier.arrived;
  if (warp.barrier.open_if_complete())
    warp_opened(warp, orders_memory);
  else
    yield_to_scheduler(warp.barrier);
}

bool any_of_block(bool mine) {
  static bool any;
  wait_for_block();
  any = false;
  wait_for_block();
  any = any || mine;
  wait_for_block();
  return any;
}

void publish(const void* value, std::size_t bytes) {
  if (bytes > kMostExchanged) std::abort();
  std::memcpy(self().given.data(), value, bytes);
  wait_for_warp();
}
const void* published(int lane) {
  return now.fibers[now.running / kWarp * kWarp + static_cast<unsigned>(lane)].given.data();
}
void exchange(void* value, std::size_t bytes, int lane) {
  publish(value, bytes);
  std::memcpy(value, published(lane), bytes);
  wait_for_warp();  // nobody gives again before all have read
}

unsigned atomic_max(unsigned* at, unsigned value) {
  watched::touch(at, sizeof *at, Access::atomic, __builtin_return_address(0));
  const unsigned before = *at;  // threads take turns, so that nobody is in between
  *at = std::max(before, value);
  return before;
}

void run(const Launch& launch, const std::function<void()>& thread) {
  const dim3 grid = launch.grid, size = launch.block;
  if (launch.shared_bytes > kMostShared ||
      std::size_t{size.x} * size.y * size.z > std::size_t{kMostThreads})
    stop("no GPU could launch this");
  now.fibers.resize(kMostThreads);
  now.thread = &thread;
  blockDim = size;
  gridDim = grid;
  watched::launch_begins(launch);
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x)
        run_block({x, y, z}, size, launch.shared_bytes);
  watched::launch_ends();
}

}  // namespace vfm::emulation
