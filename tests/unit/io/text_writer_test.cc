// Long texts that are written without holding them.
// SPDX-License-Identifier: Apache-2.0
#include "io/text_writer.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>

#include "io/file.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;
namespace fs = std::filesystem;

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
