// What keeps memory bounded: tables of names, long texts.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

#include "base/name_table.h"
#include "io/file.h"
#include "io/text_writer.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;
namespace fs = std::filesystem;

TEST_CASE("a table of names numbers them as they come") {
  NameTable names;
  CHECK_FALSE(names.find("a"));
  CHECK(names.add("b") == std::pair<std::uint32_t, bool>{0, true});
  CHECK(names.add("") == std::pair<std::uint32_t, bool>{1, true});
  CHECK(names.add("b") == std::pair<std::uint32_t, bool>{0, false});
  for (int i = 0; i < 1000; ++i)
    CHECK(names.add(std::to_string(i)).first == static_cast<std::uint32_t>(i) + 2);
  CHECK(names.size() == 1002);
  CHECK(names.name(0) == "b");
  CHECK(names.name(1).empty());
  for (int i = 0; i < 1000; ++i) {
    CHECK(names.name(static_cast<std::uint32_t>(i) + 2) == std::to_string(i));
    CHECK(names.find(std::to_string(i)).value() == static_cast<std::uint32_t>(i) + 2);
  }
  CHECK_FALSE(names.find("1000"));
  CHECK(names.text().substr(0, 4) == "b012");
  CHECK(names.ends()[2] == 2);
}

TEST_CASE("a long text appears whole, and stays where it stands already") {
  const TemporaryFolder folder;
  const std::string path = folder / "text";
  std::string text;
  const auto write = [&](const std::string& last) {
    TextWriter out(path);
    text.clear();
    for (int i = 0; i < 30'000; ++i) {
      const std::string line = std::to_string(i) + "\n";
      out.add(line);
      text += line;
    }
    out.add(last);
    text += last;
    out.update();
  };
  write("end");
  CHECK(read_file(path) == text);
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  const auto before = fs::last_write_time(path);
  write("end");
  CHECK(fs::last_write_time(path) == before);
  write("and");  // as long
  CHECK(read_file(path) == text);
  CHECK(fs::last_write_time(path) != before);
  {
    TextWriter out(path);
    out.add("x");
    CHECK(out.differs());
  }
  CHECK(read_file(path) == text);
  TextWriter(path).update();
  CHECK(read_file(path).empty());
}
