// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "base/xxh3.h"

using namespace vfm;

TEST_CASE("our own XXH3 of short text is the library's, at every length") {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += static_cast<char>(i * 41 + i / 253);
  for (std::size_t size = 0; size <= text.size(); ++size)
    REQUIRE(fmt::format("{:016x}", xxh3_64(text.data(), size)) ==
            Hasher().update(text.data(), size).hex64());
  // What `xxhsum -H3` prints.
  CHECK(xxh3_64("", 0) == 0x2d06800538d394c2);
}

TEST_CASE("a stream has the hash of its bytes in one piece, at every length, in both widths") {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += static_cast<char>(i * 37 + i / 251);
  // Lengths around the borders of XXH3's ways: 16, 128, 240 bytes, stripes of 64, buffers of 256,
  // blocks of 1024; in pieces of several sizes.
  for (const std::size_t size :
       {0, 1, 16, 17, 128, 129, 240, 241, 255, 256, 257, 1023, 1024, 1025, 5000})
    for (const std::size_t piece : {1, 7, 64, 256, 1000, 5000}) {
      Hasher hasher;
      for (std::size_t at = 0; at < size; at += piece)
        hasher.update(text.data() + at, std::min(piece, size - at));
      CHECK(hasher.hex64() == fmt::format("{:016x}", xxh3_64(text.data(), size)));
      CHECK(hasher.hex128() == hash_hex(text.substr(0, size)));
    }
}
