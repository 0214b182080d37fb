// SPDX-License-Identifier: Apache-2.0
#include "shard/name_table.h"

#include <algorithm>
#include <stdexcept>

#include "base/xxh3.h"

namespace vfm::shard {

/// Returns the slot of the name, or the free slot where it belongs. There must be slots.
std::size_t NameTable::slot_of(std::string_view name) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = xxh3_64(name.data(), name.size()) & mask;
  while (slots_[at] != 0 && this->name(slots_[at] - 1) != name)
    at = (at + 1) & mask;
  return at;
}

void NameTable::grow() {
  slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), 0);
  for (std::uint32_t number = 0; number < ends_.size(); ++number)
    slots_[slot_of(name(number))] = number + 1;
}

std::pair<std::uint32_t, bool> NameTable::add(std::string_view name) {
  if (4 * (ends_.size() + 1) > 3 * slots_.size()) grow();
  std::uint32_t& slot = slots_[slot_of(name)];
  if (slot != 0) return {slot - 1, false};
  if (ends_.size() >= std::size_t{1} << 31) throw std::length_error("too many names");
  text_ += name;
  ends_.push_back(text_.size());
  slot = static_cast<std::uint32_t>(ends_.size());
  return {slot - 1, true};
}

std::optional<std::uint32_t> NameTable::find(std::string_view name) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t number = slots_[slot_of(name)];
  return number == 0 ? std::nullopt : std::optional(number - 1);
}

}  // namespace vfm::shard
