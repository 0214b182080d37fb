// Memory of the emulated device. Thread-safety: any thread, but for find_memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "races.h"

namespace vfm::emulation {

struct MemoryBlock {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::unique_ptr<Shadow> shadow;  ///< null until it is watched
};

/// Begins on a page, and shares none. Null when there is no more than set_memory says.
void* allocate(std::size_t bytes);
/// False if that was never allocated. Null is nothing.
bool release(void* pointer);
void set_memory(std::size_t bytes);
std::size_t used_memory();

/// The block that an address is in, or behind on the block's last page; or null. While nobody
/// allocates.
MemoryBlock* find_memory(std::uintptr_t at);
/// All whole pages of each block. While nobody allocates.
void for_each_memory(const std::function<void(std::uintptr_t begin, std::size_t bytes)>& call);

}  // namespace vfm::emulation
