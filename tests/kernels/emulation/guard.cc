// SPDX-License-Identifier: Apache-2.0
#include "guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "emulation.h"
#include "memory.h"

namespace vfm::emulation::guard {
namespace {

#if defined(__x86_64__) && defined(__linux__)

constexpr std::uintptr_t kPageBytes = 4096;
constexpr greg_t kSingleStep = 0x100;  // the processor's trap flag
constexpr std::size_t kMostPlaces = 16;

struct Told {
  std::uintptr_t begin = 0, end = 0;
};
struct Guard {
  bool on = false;
  unsigned left = 0;
  std::uint64_t start = 0, announced = 0, stops = 0;
  std::array<Told, 4> told{};  // a copy is told of at both ends before it is done
  unsigned next = 0;
  std::array<std::uintptr_t, 4> open{};  // pages, for one instruction
  unsigned open_pages = 0;
  std::vector<const void*> unseen;
};
Guard state;  // NOLINT: not the watch's

void protect(std::uintptr_t begin, std::size_t bytes, int rights) {
  if (bytes > 0 && mprotect(reinterpret_cast<void*>(begin), bytes, rights) != 0)
    stop("memory cannot be guarded");
}
void protect_all(int rights) {
  const Bytes shared = all_shared_memory();
  protect(reinterpret_cast<std::uintptr_t>(shared.begin), shared.size, rights);
  for_each_memory(
      [rights](std::uintptr_t begin, std::size_t bytes) { protect(begin, bytes, rights); });
}

bool guarded(std::uintptr_t at) {
  const Bytes shared = all_shared_memory();
  return at - reinterpret_cast<std::uintptr_t>(shared.begin) < shared.size ||
         find_memory(at) != nullptr;
}

void on_access(int, siginfo_t* what, void* context) {
  const auto at = reinterpret_cast<std::uintptr_t>(what->si_addr);
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (!state.on || !guarded(at) || state.open_pages == state.open.size()) {
    signal(SIGSEGV, SIG_DFL);  // a crash of its own: it comes again
    return;
  }
  ++state.stops;
  const bool told = std::any_of(state.told.begin(), state.told.end(),
                                [at](const Told& one) { return at >= one.begin && at < one.end; });
  if (!told && state.unseen.size() < kMostPlaces)
    state.unseen.push_back(reinterpret_cast<const void*>(registers[REG_RIP]));
  const std::uintptr_t page = at / kPageBytes * kPageBytes;
  state.open[state.open_pages++] = page;
  protect(page, kPageBytes, PROT_READ | PROT_WRITE);
  registers[REG_EFL] |= kSingleStep;
}

void on_step(int, siginfo_t*, void* context) {
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kSingleStep;
  if (state.left == 0 || --state.left == 0) {
    if (std::exchange(state.on, false)) protect_all(PROT_READ | PROT_WRITE);
  } else {
    for (unsigned i = 0; i < state.open_pages; ++i)
      protect(state.open[i], kPageBytes, PROT_NONE);
  }
  state.open_pages = 0;
}

void install() {
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = on_access;
  sigaction(SIGSEGV, &action, nullptr);
  action.sa_sigaction = on_step;
  sigaction(SIGTRAP, &action, nullptr);
}

#endif

}  // namespace

#if defined(__x86_64__) && defined(__linux__)

void begin(std::uint64_t start, unsigned accesses) {
  static const bool installed = (install(), true);
  static_cast<void>(installed);
  state.unseen.reserve(kMostPlaces);
  state.left = accesses;
  state.told = {};
  state.start = start;
  state.announced = 0;
}

std::uint64_t announced() {
  return state.announced;
}

std::vector<const void*> end() {
  if (std::exchange(state.on, false)) protect_all(PROT_READ | PROT_WRITE);
  return std::exchange(state.unseen, {});
}

void lift() {
  if (state.on) protect_all(PROT_READ | PROT_WRITE);
}
void lower() {
  if (state.on) protect_all(PROT_NONE);
}

void announce(const void* at, std::size_t bytes) {
  if (state.announced++ == state.start && state.left > 0) {
    state.on = true;
    protect_all(PROT_NONE);
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  state.told[state.next++ % state.told.size()] = {begin, begin + bytes};
}

std::uint64_t stops() {
  return state.stops;
}

#else

void begin(std::uint64_t, unsigned) {}
std::uint64_t announced() {
  return 0;
}
std::vector<const void*> end() {
  return {};
}
void lift() {}
void lower() {}
void announce(const void*, std::size_t) {}
std::uint64_t stops() {
  return 0;
}

#endif

}  // namespace vfm::emulation::guard
