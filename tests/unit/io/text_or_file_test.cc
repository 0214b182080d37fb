// TEXT, @FILE and @@TEXT.
// SPDX-License-Identifier: Apache-2.0
#include "io/text_or_file.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "base/error.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;

TEST_CASE("a text is itself, @FILE what the file has, and @@ an at sign") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/prompt.txt";
  std::ofstream(path) << " One line.\nTwo.\n\r\n";
  CHECK(text_or_file("What is it?") == "What is it?");
  CHECK(text_or_file("").empty());
  CHECK(text_or_file("a@b") == "a@b");
  CHECK(text_or_file("@" + path) == " One line.\nTwo.");
  CHECK(text_or_file("@@" + path) == "@" + path);
  CHECK(text_or_file("@@") == "@");
}

TEST_CASE("a file that is no text for an option is a usage error that names it") {
  const TemporaryFolder folder;
  const std::string empty = folder.path + "/empty", large = folder.path + "/large";
  std::ofstream(empty) << "\n";
  std::ofstream(large) << std::string((1 << 20) + 1, 'a');
  for (const std::string& value : {"@" + empty, "@" + large, "@" + folder.path,
                                   "@" + folder.path + "/none", std::string("@gs://bucket/x")}) {
    try {
      text_or_file(value);
      FAIL("taken: " << value);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      CHECK(std::string(error.what()).find(value.substr(1)) != std::string::npos);
    }
  }
  CHECK_THROWS_AS(text_or_file("@"), Error);
}
