// CRC32C (Castagnoli), the checksum that object stores verify, for streams of bytes.
// Source: RFC 3720, appendix B.4. The combination of three streams is that of M. Adler, crc32c.c.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace vfm {

/// Returns the CRC32C of the bytes so far and these bytes. `before` is the CRC32C of the bytes so
/// far, or 0. Thread-safety: any thread.
std::uint32_t crc32c(std::uint32_t before, const void* data, std::size_t size) noexcept;
/// As crc32c(), without instructions of the processor for it.
std::uint32_t crc32c_plain(std::uint32_t before, const void* data, std::size_t size) noexcept;

}  // namespace vfm
