// Which name came first with a key: in memory and on the disk.
// SPDX-License-Identifier: Apache-2.0
#include "io/first_names.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.h"
#include "base/hash.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;

TEST_CASE("the first name of a key is known, however many there are, and no file is left") {
  const TemporaryFolder folder;
  constexpr int kKeys = 3000;
  const std::size_t in_memory = GENERATE(10000, 100);
  FirstNames names(folder.path, in_memory);
  const auto key = [](int i) { return hash_hex(std::to_string(i)); };
  const auto name = [](int i) { return "raw/" + std::string(i % 900, 'v') + std::to_string(i); };
  for (int i = 0; i < kKeys; ++i) {
    CHECK_FALSE(names.find(key(i)));
    CHECK_FALSE(names.put(key(i), name(i)));
    CHECK(names.find(key(i)) == name(i));
    if (i % 7 == 0) CHECK(names.put(key(i / 2), "another") == name(i / 2));
  }
  for (int i = 0; i < kKeys; i += 11)
    CHECK(names.put(key(i), "another") == name(i));
  for (int i = 0; i < kKeys; i += 11)
    CHECK(names.find(key(i)) == name(i));
  CHECK_FALSE(names.find(key(kKeys)));
  CHECK_FALSE(names.find(""));
  CHECK_FALSE(names.put("", ""));
  CHECK(names.find("") == "");
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("where no temporary file can be made it is said") {
  FirstNames names("/nowhere", 1);
  names.put("a", "a");
  CHECK_THROWS_WITH(names.put("b", "b"), Catch::Contains("'/nowhere'"));
}
