// SPDX-License-Identifier: Apache-2.0
#include "watch.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "guard.h"
#include "memory.h"
#include "places.h"
#include "races.h"

extern unsigned char __executable_start[], _end[];  // NOLINT: the linker's

namespace vfm::emulation {
namespace {

struct Fault {
  std::uint32_t place = 0;
  unsigned block = 0, thread = 0;
  Access access{};
  const char* memory = "";  // which kind
  std::uintptr_t at = 0;    // in it
  std::size_t bytes = 0;
  bool race = false;
  bool unseen = false;  // only the place is known
  Mark other;
  unsigned other_block = 0;
};

constexpr std::size_t kMostFaults = 10;  // of one launch that are told
// In the first launches of each kernel some accesses are guarded, so that none goes unseen: of the
// first launch from its beginning, of the second from a place of chance.
constexpr unsigned kGuardedLaunches = 2, kGuardedAccesses = 300;

struct Watch {
  bool on = false;
  bool collects = false;
  std::vector<std::string> told;

  Launch launch;
  Bytes stacks = all_stacks();
  Bytes host_stack{};  // of those who launched
  std::vector<Fault> faults;
  std::set<std::tuple<std::uint32_t, std::uint32_t, bool>> known;
  Races races;
  Matcher matcher;
  std::unique_ptr<Shadow> shared;
  std::array<MemoryBlock*, 8> recent{};  // blocks of memory
  std::size_t next = 0;
  std::map<const void*, Traffic> kernels;
  struct Guarded {
    unsigned launches = 0;
    std::uint64_t accesses = 0;  // of the first launch
  };
  std::map<const void*, Guarded> guarded;
  std::map<std::uint32_t, Traffic> places;
};

Watch* made = nullptr;  // never destroyed, as it is asked at each access

Watch& state() {
  if (made == nullptr) [[unlikely]] {
    made = new Watch;
    const char* const asked = std::getenv("VFM_EMULATION");
    made->on = asked != nullptr && std::strcmp(asked, "watch") == 0;
  }
  return *made;
}

std::uintptr_t address(const Bytes& bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.begin);
}
bool within(std::uintptr_t at, const Bytes& bytes) {
  return at - address(bytes) < bytes.size;
}

// Where an access goes.
enum class Kind { own, shared, global, wild };
struct Target {
  Kind kind = Kind::own;
  std::uintptr_t at = 0;  // in the shared memory or the block
  MemoryBlock* block = nullptr;
};

MemoryBlock* find_block(Watch& w, std::uintptr_t at) {
  for (MemoryBlock* block : w.recent)
    if (block != nullptr && at - block->begin < block->bytes) return block;
  MemoryBlock* const found = find_memory(at);
  if (found == nullptr) return nullptr;
  if (found->shadow == nullptr) found->shadow = std::make_unique<Shadow>(found->bytes);
  w.next = (w.next + 1) % w.recent.size();
  return w.recent[w.next] = found;
}

Target target(Watch& w, const void* pointer, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  const Bytes shared = all_shared_memory();
  const Bytes program = {__executable_start, static_cast<std::size_t>(_end - __executable_start)};
  if (within(at, w.stacks)) return {};
  if (within(at, shared)) {
    const Bytes asked = {shared_memory(), w.launch.shared_bytes};
    // Between what was asked for and its variables there is much that nobody has.
    const bool dynamic = within(at, {asked.begin, 227 << 10});
    if (dynamic && !(within(at, asked) && within(at + bytes - 1, asked)))
      return {Kind::wild, at - address(asked), nullptr};
    return {Kind::shared, at - address(shared), nullptr};
  }
  if (within(at, program)) return {};
  if (MemoryBlock* const block = find_block(w, at)) {
    const std::uintptr_t place = at - block->begin;
    return {place + bytes <= block->bytes ? Kind::global : Kind::wild, place, block};
  }
  // Where the kernel's arguments are found, which on a GPU are just there.
  const bool argument = within(at, w.launch.arguments) || within(at, w.host_stack);
  return {argument ? Kind::own : Kind::wild, at, nullptr};
}

unsigned running_block() {
  return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

void add_fault(Watch& w, const Fault& fault) {
  if (w.faults.size() >= kMostFaults) return;
  if (w.known.emplace(fault.place, fault.other.place, fault.race).second) w.faults.push_back(fault);
}

void add_unseen(Watch& w, const void* place) {
  Fault fault;
  fault.place = offset_of(place);
  fault.unseen = true;
  add_fault(w, fault);
}

const char* verb(Access access) {
  switch (access) {
    case Access::read:
      return "reads";
    case Access::write:
    case Access::copy_ends:
      return "writes";
    case Access::atomic:
      return "changes atomically";
    case Access::copy_begins:
      return "copies to it";
  }
  return "";
}

std::string tell(const Fault& fault, const Place& here, const Place& there) {
  const auto who = [](unsigned block, unsigned thread, Access access, const Place& place) {
    return "thread " + std::to_string(thread) + " of block " + std::to_string(block) + " " +
           verb(access) + " (" + place.line + ")";
  };
  if (fault.unseen)
    return here.function + ": an access that the compiler did not tell of (" + here.line + ")";
  const std::string place = std::string(fault.memory) + " memory, byte " +
                            std::to_string(fault.at) + ", " + std::to_string(fault.bytes) +
                            " bytes: ";
  const std::string text = here.function + ": " + (fault.race ? "race in " : "not the kernel's: ") +
                           place + who(fault.block, fault.thread, fault.access, here);
  if (!fault.race) return text;
  return text + "; " + who(fault.other_block, fault.other.thread, fault.other.access, there);
}

// For races and wild memory.
void look(Watch& w, const Target& to, const void* pointer, std::size_t bytes, Access access,
          const void* place) {
  if (to.kind == Kind::own) return;
  const unsigned thread = running_thread();
  Fault fault;
  fault.place = offset_of(place) - 1;  // the call, not what is behind it
  fault.block = running_block();
  fault.thread = thread;
  fault.access = access;
  fault.at = to.at;
  fault.bytes = bytes;
  if (to.kind == Kind::wild) {
    const bool shared = within(reinterpret_cast<std::uintptr_t>(pointer), all_shared_memory());
    fault.memory = to.block != nullptr ? "global" : shared ? "shared" : "no";
    return add_fault(w, fault);
  }
  const bool shared = to.kind == Kind::shared;
  const auto race = w.races.touch(shared ? *w.shared : *to.block->shadow, shared, to.at, bytes,
                                  thread, access, fault.place);
  if (!race) return;
  fault.memory = shared ? "shared" : "global";
  fault.race = true;
  fault.other = *race;
  fault.other_block = w.races.block_of(*race);
  add_fault(w, fault);
}

// For the traffic; `part` of a longer access.
void count(Watch& w, const Target& to, const void* pointer, std::size_t bytes, const void* place,
           unsigned part) {
  if (to.kind != Kind::shared && to.kind != Kind::global) return;
  const bool shared = to.kind == Kind::shared;
  const std::uintptr_t where =
      std::uintptr_t{offset_of(place) - 1} << 8 | (part << 1 & 0xffu) | unsigned{shared};
  w.matcher.add(running_thread(), where, shared, reinterpret_cast<std::uintptr_t>(pointer), bytes);
}

}  // namespace

void watch(bool on) {
  state().on = on;
}

std::vector<std::string> take_faults() {
  state().collects = true;
  return std::exchange(state().told, {});
}

std::map<std::string, Traffic> take_traffic() {
  std::vector<std::uint32_t> code;
  for (const auto& [kernel, traffic] : state().kernels)
    code.push_back(offset_of(kernel));
  const std::vector<Place> names = describe(code);
  std::map<std::string, Traffic> result;
  std::size_t i = 0;
  for (const auto& [kernel, traffic] : std::exchange(state().kernels, {}))
    result[names[i++].function] += traffic;
  return result;
}

std::map<std::string, Traffic> take_places() {
  std::vector<std::uint32_t> code;
  std::vector<Traffic> all;
  for (const auto& [place, traffic] : std::exchange(state().places, {})) {
    if (traffic.wavefronts == traffic.least_wavefronts && traffic.sectors == traffic.least_sectors)
      continue;
    code.push_back(place);
    all.push_back(traffic);
  }
  const std::vector<Place> names = describe(code);
  std::map<std::string, Traffic> result;
  for (std::size_t i = 0; i < all.size(); ++i)
    result[names[i].function + ", " + names[i].line] += all[i];
  return result;
}

namespace watched {

bool active = false;

void launch_begins(const Launch& launch) {
  Watch& w = state();
  active = w.on;
  if (!active) return;
  if (w.shared == nullptr) w.shared = std::make_unique<Shadow>(all_shared_memory().size);
  w.launch = launch;
  w.host_stack = {static_cast<unsigned char*>(__builtin_frame_address(0)), 4096};
  w.recent = {};
  w.known.clear();
  w.races.launch_begins();
  const Watch::Guarded& before = w.guarded[launch.kernel];
  guard::begin(before.accesses == 0 ? 0 : chance() % before.accesses,
               before.launches < kGuardedLaunches ? kGuardedAccesses : 0);
}

void launch_ends() {
  if (!active) return;
  active = false;
  Watch& w = state();
  Watch::Guarded& guarded = w.guarded[w.launch.kernel];
  if (guarded.launches++ == 0) guarded.accesses = guard::announced();
  for (const void* place : guard::end())
    add_unseen(w, place);
  Traffic& sum = w.kernels[w.launch.kernel];
  for (const auto& [place, traffic] : w.matcher.take()) {
    sum += traffic;
    w.places[static_cast<std::uint32_t>(place >> 8)] += traffic;
  }
  if (w.faults.empty()) return;
  std::vector<std::uint32_t> code;
  for (const Fault& fault : w.faults)
    code.insert(code.end(), {fault.place, fault.other.place});
  const std::vector<Place> places = describe(code);
  for (std::size_t i = 0; i < w.faults.size(); ++i) {
    w.told.push_back(tell(w.faults[i], places[2 * i], places[2 * i + 1]));
    if (!w.collects) std::fprintf(stderr, "emulation: %s\n", w.told.back().c_str());
  }
  w.faults.clear();
  if (!w.collects) stop("the kernel is wrong");
}

void block_begins() {
  if (!active) return;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  state().races.block_begins(threads);
  state().matcher.block_begins(threads);
}

void block_ends() {
  if (!active) return;
  for (unsigned i = 0; i < blockDim.x * blockDim.y * blockDim.z; i += kWarp)
    state().matcher.warp_synced(i / kWarp);
}

void block_synced() {
  if (!active) return;
  state().races.block_synced();
  block_ends();
}

void warp_synced(unsigned warp, bool orders_memory) {
  if (!active) return;
  if (orders_memory) state().races.warp_synced(warp);
  state().matcher.warp_synced(warp);
}

void touch(const void* pointer, std::size_t bytes, Access access, const void* place) {
  if (!active) return;
  guard::announce(pointer, bytes);
  look(state(), target(state(), pointer, bytes), pointer, bytes, access, place);
}

void transfer(const void* pointer, std::size_t bytes, const void* place) {
  if (active) count(state(), target(state(), pointer, bytes), pointer, bytes, place, 0);
}

void load_or_store(const void* pointer, std::size_t bytes, bool aligned, Access access,
                   const void* place) {
  if (!active) return;
  guard::announce(pointer, bytes);
  Watch& w = state();
  const Target to = target(w, pointer, bytes);
  if (to.kind == Kind::own) return;
  look(w, to, pointer, bytes, access, place);
  const std::size_t part = aligned && bytes <= 16 ? bytes
                           : bytes % 4 == 0       ? 4
                           : bytes % 2 == 0       ? 2
                                                  : 1;
  for (std::size_t i = 0; i * part < bytes; ++i)
    count(w, to, static_cast<const char*>(pointer) + i * part, part, place,
          static_cast<unsigned>(i));
}

}  // namespace watched
}  // namespace vfm::emulation
