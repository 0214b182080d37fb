// The list of mapped files for the handler of SIGBUS (cli/signals.h). SIGBUS ends the process if a
// page of a mapped file cannot be read. The handler then names the file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace vfm::io {

/// Adds a mapped file to the list. MappedFile (io/file.h) calls this function. Thread-safe.
void note_mapping(const void* begin, std::size_t bytes, const std::string& path);
void forget_mapping(const void* begin) noexcept;

struct FileMapping {
  const char* path = nullptr;  ///< Path, or the end of a very long path; null if no file is mapped.
  std::size_t bytes = 0;
};

/// Returns the path of the file mapped at an address. Safe in signal handlers.
FileMapping mapping_at(const void* address) noexcept;

}  // namespace vfm::io
