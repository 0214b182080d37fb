// SPDX-License-Identifier: Apache-2.0
#include "tensor/arena.h"

#include <algorithm>
#include <iterator>

namespace vfm {
namespace {

constexpr std::size_t kGranularity = 512, kLeastRegion = std::size_t{32} << 20;

std::size_t rounded(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + kGranularity - 1) / kGranularity * kGranularity;
}

}  // namespace

std::shared_ptr<void> Arena::allocate(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  std::lock_guard lock(mutex_);
  const auto fits = [&](const auto& part) { return part.second.free && part.second.size >= size; };
  auto found = std::find_if(parts_.begin(), parts_.end(), fits);
  if (found == parts_.end()) {
    if (!grow(size)) return nullptr;
    found = std::find_if(parts_.begin(), parts_.end(), fits);
  }
  std::byte* const at = found->first;
  if (found->second.size > size) {
    parts_[at + size] = {found->second.size - size};
    found->second.size = size;
  }
  found->second.free = false;
  return {at, [this](void* p) { give(static_cast<std::byte*>(p)); }};
}

void Arena::give(std::byte* at) noexcept {
  std::lock_guard lock(mutex_);
  auto part = parts_.find(at);
  part->second.free = true;
  const auto join = [this](Parts::iterator left, Parts::iterator right) {
    if (!left->second.free || !right->second.free || right->second.first) return;
    left->second.size += right->second.size;
    parts_.erase(right);
  };
  if (const auto next = std::next(part); next != parts_.end()) join(part, next);
  if (part != parts_.begin()) join(std::prev(part), part);
}

void Arena::reserve(std::size_t bytes) {
  const std::size_t there = size();
  std::lock_guard lock(mutex_);
  if (bytes > there) grow(bytes - there);
}

bool Arena::grow(std::size_t bytes) {
  const std::size_t size = source_.block_size(std::max(bytes, kLeastRegion));
  void* const region = source_.get(size);
  if (region == nullptr) return false;
  parts_[static_cast<std::byte*>(region)] = {size, true, true, false};
  return true;
}

void Arena::keep() noexcept {
  std::lock_guard lock(mutex_);
  for (auto& [at, part] : parts_)
    part.kept = part.first;
}

void Arena::release(bool kept) noexcept {
  std::lock_guard lock(mutex_);
  for (auto part = parts_.begin(); part != parts_.end();) {
    const auto next = std::next(part);
    // Joined to one part, it is free as a whole.
    const bool whole = part->second.first && (next == parts_.end() || next->second.first);
    if (whole && part->second.free && (kept || !part->second.kept)) {
      source_.put(part->first, part->second.size);
      parts_.erase(part);
    }
    part = next;
  }
}

std::size_t Arena::size() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [at, part] : parts_)
    sum += part.size;
  return sum;
}

}  // namespace vfm
