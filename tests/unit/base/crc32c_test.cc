// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace vfm;

TEST_CASE("CRC32C has the values of RFC 3720") {
  const std::vector<unsigned char> zeros(32, 0), ones(32, 0xff);
  CHECK(crc32c(0, zeros.data(), 32) == 0x8a9136aa);
  CHECK(crc32c(0, ones.data(), 32) == 0x62a8ab43);
  const std::string digits = "123456789";
  CHECK(crc32c(0, digits.data(), digits.size()) == 0xe3069283);
  CHECK(crc32c(0, nullptr, 0) == 0);
}

TEST_CASE("CRC32C is the same with and without instructions for it, whole and in pieces") {
  std::string text;
  for (std::uint32_t i = 0; i < 40'000; ++i)
    text += static_cast<char>(i * 2654435761u >> 24);
  for (const std::size_t size : {0, 1, 7, 8, 9, 4096, 12287, 12288, 12289, 40'000}) {
    const std::uint32_t whole = crc32c(0, text.data(), size);
    CHECK(whole == crc32c_plain(0, text.data(), size));
    const std::size_t half = size / 3;
    CHECK(whole == crc32c(crc32c(0, text.data(), half), text.data() + half, size - half));
  }
}
