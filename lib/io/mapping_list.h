// Which files are mapped where, for who handles SIGBUS (cli/signals.h): a page that cannot be read
// when it is needed ends the process, as no read returns an error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace vfm::io {

/// A file that is mapped; io/file.h, MappedFile, puts each of its own on the list. Thread-safe.
void note_mapping(const void* begin, std::size_t bytes, const std::string& path);
void forget_mapping(const void* begin) noexcept;

struct Mapping {
  const char* path = nullptr;  ///< the end of it, if it is very long; null: there is none
  std::size_t bytes = 0;
};

/// What is mapped at an address. For a handler of signals: it takes no lock and no memory.
Mapping mapping_at(const void* address) noexcept;

}  // namespace vfm::io
