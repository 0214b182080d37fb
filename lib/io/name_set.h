// Which names came before, of any number of them, in memory that does not grow with it.
//
// A name is its XXH3-128, and so two names with one hash count as one: of a billion names some two
// have the same with a chance of 10^-21. The latest are in a table in memory. What fills it goes,
// sorted, to a temporary file; eight such runs become one eight times as long. So a name is looked
// for in some twenty places at most, in each with one read of 8 KiB; and a filter (Bloom,
// "Space/time trade-offs in hash coding", 1970; one word a name) knows of most new names that they
// are in none. Memory: 100 MiB once the table was full, little before. Disk: 16 bytes a name, twice
// that while runs become one. Time: below a microsecond for a new name, some 20 for one that was on
// disk. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace vfm::io {

class NameSet {
 public:
  static constexpr std::size_t kInMemory = std::size_t{1} << 19;

  /// Temporary files go to the disk of `folder`, which exists once `in_memory` names are there.
  explicit NameSet(std::string folder, std::size_t in_memory = kInMemory);
  ~NameSet();
  NameSet(NameSet&&) noexcept;

  /// Adds it. False: it was there before. Throws Error, or Stopped, where the disk is full.
  bool insert(std::string_view name);
  /// Adds it without a look at the disk whether it was there.
  void add(std::string_view name);
  bool contains(std::string_view name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::io
