// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace vfm {
namespace {

constexpr std::uint32_t kCastagnoli = 0x82f63b78;  // bits reflected
using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

/// Entry [k][b] is the CRC of byte b with k zero bytes after it.
constexpr CrcTables crc_tables() {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) ? kCastagnoli : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  return tables;
}
constexpr CrcTables kTables = crc_tables();

std::uint32_t plain_bytes(std::uint32_t crc, const unsigned char* at, std::size_t size) {
  if constexpr (std::endian::native == std::endian::little) {
    for (; size >= 8; at += 8, size -= 8) {
      std::uint64_t word;
      std::memcpy(&word, at, 8);
      word ^= crc;
      crc = 0;
      for (std::size_t k = 0; k < 8; ++k)
        crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
    }
  }
  for (; size > 0; ++at, --size)
    crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xff];
  return crc;
}

#if defined(__x86_64__)

constexpr std::size_t kStream = 4096;  // bytes of each of three streams

/// Entry [k][b] is the CRC of byte b at place k of a CRC, with kStream zero bytes after it.
using ShiftTables = std::array<std::array<std::uint32_t, 256>, 4>;

ShiftTables shift_tables() {
  ShiftTables tables{};
  const std::array<unsigned char, kStream> zeros{};
  for (std::size_t k = 0; k < 4; ++k)
    for (std::uint32_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = plain_bytes(byte << (8 * k), zeros.data(), zeros.size());
  return tables;
}

std::uint32_t shifted(const ShiftTables& tables, std::uint32_t crc) {
  return tables[0][crc & 0xff] ^ tables[1][(crc >> 8) & 0xff] ^ tables[2][(crc >> 16) & 0xff] ^
         tables[3][crc >> 24];
}

/// The instruction takes three cycles and can begin in each, so three streams run side by side.
__attribute__((target("sse4.2"))) std::uint32_t fast_bytes(std::uint32_t crc,
                                                           const unsigned char* at,
                                                           std::size_t size) {
  static const ShiftTables tables = shift_tables();
  const auto word = [](const unsigned char* from) {
    std::uint64_t value;
    std::memcpy(&value, from, 8);
    return value;
  };
  for (; size >= 3 * kStream; at += 3 * kStream, size -= 3 * kStream) {
    std::uint64_t first = crc, second = 0, third = 0;
    for (std::size_t i = 0; i < kStream; i += 8) {
      first = _mm_crc32_u64(first, word(at + i));
      second = _mm_crc32_u64(second, word(at + kStream + i));
      third = _mm_crc32_u64(third, word(at + 2 * kStream + i));
    }
    crc = shifted(tables, static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
    crc = shifted(tables, crc) ^ static_cast<std::uint32_t>(third);
  }
  std::uint64_t wide = crc;
  for (; size >= 8; at += 8, size -= 8)
    wide = _mm_crc32_u64(wide, word(at));
  crc = static_cast<std::uint32_t>(wide);
  for (; size > 0; ++at, --size)
    crc = _mm_crc32_u8(crc, *at);
  return crc;
}

#endif

}  // namespace

std::uint32_t crc32c_plain(std::uint32_t before, const void* data, std::size_t size) noexcept {
  return ~plain_bytes(~before, static_cast<const unsigned char*>(data), size);
}

std::uint32_t crc32c(std::uint32_t before, const void* data, std::size_t size) noexcept {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("sse4.2");
  if (fast) return ~fast_bytes(~before, static_cast<const unsigned char*>(data), size);
#endif
  return crc32c_plain(before, data, size);
}

}  // namespace vfm
