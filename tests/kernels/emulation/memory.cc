// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>

namespace vfm::emulation {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t in_pages(std::size_t bytes) {
  return std::max((bytes + kPage - 1) / kPage, std::size_t{1}) * kPage;
}

struct Memory {
  std::mutex mutex;
  std::map<std::uintptr_t, MemoryBlock> blocks;
  std::size_t limit = std::numeric_limits<std::size_t>::max(), used = 0;
};
// Never destroyed: static objects may hold memory.
Memory& all() {
  static Memory* const memory = new Memory;
  return *memory;
}

}  // namespace

void* allocate(std::size_t bytes) {
  Memory& memory = all();
  std::lock_guard lock(memory.mutex);
  if (bytes > memory.limit - std::min(memory.used, memory.limit)) return nullptr;
  void* const room = std::aligned_alloc(kPage, in_pages(bytes));
  if (room == nullptr) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(room);
  memory.blocks[begin] = {begin, bytes, nullptr};
  memory.used += bytes;
  return room;
}

bool release(void* pointer) {
  if (pointer == nullptr) return true;
  Memory& memory = all();
  std::lock_guard lock(memory.mutex);
  const auto found = memory.blocks.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == memory.blocks.end()) return false;
  memory.used -= found->second.bytes;
  memory.blocks.erase(found);
  std::free(pointer);
  return true;
}

std::size_t used_memory() {
  std::lock_guard lock(all().mutex);
  return all().used;
}
void set_memory(std::size_t bytes) {
  std::lock_guard lock(all().mutex);
  all().limit = bytes;
}

MemoryBlock* find_memory(std::uintptr_t at) {
  auto& blocks = all().blocks;
  const auto next = blocks.upper_bound(at);
  if (next == blocks.begin()) return nullptr;
  MemoryBlock& block = std::prev(next)->second;
  return at - block.begin < in_pages(block.bytes) ? &block : nullptr;
}

void for_each_memory(const std::function<void(std::uintptr_t, std::size_t)>& call) {
  for (const auto& [begin, block] : all().blocks)
    call(begin, in_pages(block.bytes));
}

}  // namespace vfm::emulation
