// SPDX-License-Identifier: Apache-2.0
#include "base/xxh3.h"

#include <array>
#include <bit>
#include <cstring>

namespace vfm {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Bytes = const unsigned char*;

constexpr u64 kPrime32_1 = 0x9E3779B1, kPrime32_2 = 0x85EBCA77, kPrime32_3 = 0xC2B2AE3D;
constexpr u64 kPrime64_1 = 0x9E3779B185EBCA87, kPrime64_2 = 0xC2B2AE3D27D4EB4F,
              kPrime64_3 = 0x165667B19E3779F9, kPrime64_4 = 0x85EBCA77C2B2AE63,
              kPrime64_5 = 0x27D4EB2F165667C5;

// The default secret of XXH3, which is mixed with the input.
// clang-format off
constexpr unsigned char kSecret[192] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c,
    0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb,
    0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
    0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6,
    0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
    0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97,
    0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
    0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31,
    0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83,
    0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26,
    0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc,
    0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
    0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};
// clang-format on

// XXH3 reads little-endian numbers.
template <class T>
T read(Bytes p) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
u64 secret(std::size_t at) {
  return read<u64>(kSecret + at);
}

u64 multiply_fold(u64 a, u64 b) {
  __extension__ using u128 = unsigned __int128;
  const u128 product = static_cast<u128>(a) * b;
  return static_cast<u64>(product) ^ static_cast<u64>(product >> 64);
}

u64 avalanche(u64 h) {
  h = (h ^ h >> 37) * 0x165667919E3779F9;
  return h ^ h >> 32;
}
// As in XXH64.
u64 long_avalanche(u64 h) {
  h = (h ^ h >> 33) * kPrime64_2;
  h = (h ^ h >> 29) * kPrime64_3;
  return h ^ h >> 32;
}

u64 up_to_16(Bytes in, std::size_t size) {
  if (size > 8) {
    const u64 low = read<u64>(in) ^ secret(24) ^ secret(32);
    const u64 high = read<u64>(in + size - 8) ^ secret(40) ^ secret(48);
    return avalanche(size + __builtin_bswap64(low) + high + multiply_fold(low, high));
  }
  if (size >= 4) {
    u64 h = (read<u32>(in + size - 4) + (u64{read<u32>(in)} << 32)) ^ secret(8) ^ secret(16);
    h ^= std::rotl(h, 49) ^ std::rotl(h, 24);
    h *= 0x9FB21C651E98DF25;
    h ^= (h >> 35) + size;
    h *= 0x9FB21C651E98DF25;
    return h ^ h >> 28;
  }
  if (size > 0) {
    const u32 word =
        u32{in[0]} << 16 | u32{in[size >> 1]} << 24 | in[size - 1] | static_cast<u32>(size) << 8;
    return long_avalanche(word ^ u64{read<u32>(kSecret) ^ read<u32>(kSecret + 4)});
  }
  return long_avalanche(secret(56) ^ secret(64));
}

u64 mix_16(Bytes in, std::size_t at) {
  return multiply_fold(read<u64>(in) ^ secret(at), read<u64>(in + 8) ^ secret(at + 8));
}

// Mixes 16 bytes at a time, from both ends.
u64 up_to_128(Bytes in, std::size_t size) {
  u64 h = size * kPrime64_1;
  for (std::size_t i = (size - 1) / 32 + 1; i-- > 0;)
    h += mix_16(in + 16 * i, 32 * i) + mix_16(in + size - 16 * (i + 1), 32 * i + 16);
  return avalanche(h);
}

u64 up_to_240(Bytes in, std::size_t size) {
  u64 h = size * kPrime64_1;
  for (std::size_t i = 0; i < 8; ++i)
    h += mix_16(in + 16 * i, 16 * i);
  h = avalanche(h);
  for (std::size_t i = 8; i < size / 16; ++i)
    h += mix_16(in + 16 * i, 16 * (i - 8) + 3);
  return avalanche(h + mix_16(in + size - 16, 136 - 17));
}

using Lanes = std::array<u64, 8>;

void add_stripe(Lanes& lanes, Bytes in, std::size_t at) {
  for (std::size_t i = 0; i < 8; ++i) {
    const u64 data = read<u64>(in + 8 * i), key = data ^ secret(at + 8 * i);
    lanes[i ^ 1] += data;
    lanes[i] += (key & 0xFFFFFFFF) * (key >> 32);
  }
}

// Blocks have 16 stripes of 64 bytes. The last stripe may overlap the one before.
u64 longer(Bytes in, std::size_t size) {
  constexpr std::size_t kStripe = 64, kBlock = 16 * kStripe;
  Lanes lanes{kPrime32_3, kPrime64_1, kPrime64_2, kPrime64_3,
              kPrime64_4, kPrime32_2, kPrime64_5, kPrime32_1};
  for (std::size_t begin = 0; begin < size - 1; begin += kBlock) {
    const bool whole = begin + kBlock <= size - 1;
    const std::size_t stripes = whole ? 16 : (size - 1 - begin) / kStripe;
    for (std::size_t i = 0; i < stripes; ++i)
      add_stripe(lanes, in + begin + kStripe * i, 8 * i);
    for (std::size_t i = 0; whole && i < 8; ++i)
      lanes[i] = (lanes[i] ^ lanes[i] >> 47 ^ secret(128 + 8 * i)) * kPrime32_1;
  }
  add_stripe(lanes, in + size - kStripe, 192 - 64 - 7);
  u64 h = size * kPrime64_1;
  for (std::size_t i = 0; i < 4; ++i)
    h += multiply_fold(lanes[2 * i] ^ secret(11 + 16 * i), lanes[2 * i + 1] ^ secret(19 + 16 * i));
  return avalanche(h);
}

}  // namespace

std::uint64_t xxh3_64(const void* data, std::size_t size) noexcept {
  const auto in = static_cast<Bytes>(data);
  if (size <= 16) return up_to_16(in, size);
  if (size <= 128) return up_to_128(in, size);
  return size <= 240 ? up_to_240(in, size) : longer(in, size);
}

}  // namespace vfm
