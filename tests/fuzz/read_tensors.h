// What fuzz targets of files with tensors do with a parser: every byte that it hands out is read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"

namespace vfm {

/// `parse(bytes)` gives something with `tensors`, or throws Error.
template <class Parse>
void read_tensors(const std::uint8_t* data, std::size_t size, const Parse& parse) {
  try {
    volatile std::size_t sum = 0;
    const auto parsed = parse(std::as_bytes(std::span(data, size)));
    for (const auto& tensor : parsed.tensors)
      for (const std::byte byte : tensor.data)
        sum = sum + std::to_integer<std::size_t>(byte);
  } catch (const Error&) {
  }
}

}  // namespace vfm
