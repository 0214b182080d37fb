// SPDX-License-Identifier: Apache-2.0
#include "io/manifest.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "io/atomic_file.h"

using namespace vfm;
using namespace vfm::io;

TEST_CASE("a bare path becomes a record of the kind its name tells") {
  CHECK(parse_record("  a/b.mp4 \r\n", "x").json == Json({{"kind", "video"}, {"path", "a/b.mp4"}}));
  CHECK(parse_record("x.tar", "x").kind == "shard");
  CHECK(parse_record("https://host/x.webm", "x").kind == "video");
  CHECK(parse_record("with spaces in it.mp4", "x").path() == "with spaces in it.mp4");
}

TEST_CASE("unknown keys stay, in order") {
  const std::string line =
      R"({"z":1,"kind":"shard","path":"a.tar","columns":{"clip":"a.tar"},"a":2})";
  CHECK(dump_json(parse_record(line, "x").json) == line);
}

TEST_CASE("nonsense is refused by name") {
  for (const char* bad :
       {"", "   ", "[1,2]", "\"text\"", "{", "{}", R"({"path":"a"})", R"({"kind":3})",
        R"({"kind":"shard","path":7})", R"({"kind":"shard","columns":[1]})",
        R"({"kind":"shard","columns":{"a":1}})", "a\x01b"})
    CHECK_THROWS_AS(parse_record(bad, "line 1"), Error);
  CHECK_THROWS_WITH(parse_record("{\"kind\":", "line 9 of 'm'"),
                    Catch::StartsWith("line 9 of 'm'"));
}

TEST_CASE("column_tars names each tar once, in order") {
  const Record joined = parse_record(
      R"({"kind":"shard","path":"a","columns":{"x":"1.tar","y":"2.tar","z":"1.tar"}})", "x");
  CHECK(column_tars(joined) == std::vector<std::string>{"1.tar", "2.tar"});
  CHECK(column_tars(parse_record("a.tar", "x")) == std::vector<std::string>{"a.tar"});
}

TEST_CASE("arguments may be paths and manifest files; bad lines are told and passed over") {
  std::string folder = "/tmp/vfm-manifest-XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const std::string file = folder + "/m.jsonl";
  write_file(file, "{\"kind\":\"video\",\"path\":\"1.mp4\"}\n\n{oops\n2.mp4");
  std::vector<std::string> bad;
  ManifestReader reader(
      {"0.mp4", file, "3.tar"},
      [&](const std::string& where, const std::string&) { bad.push_back(where); });
  std::vector<std::string> paths;
  while (const auto record = reader.next())
    paths.push_back(record->path());
  CHECK(paths == std::vector<std::string>{"0.mp4", "1.mp4", "2.mp4", "3.tar"});
  CHECK(bad == std::vector<std::string>{fmt::format("line 3 of '{}'", file)});
  std::vector<std::string> missing;
  ManifestReader other(
      {folder + "/none.jsonl", "a\nb.mp4"},
      [&](const std::string& where, const std::string&) { missing.push_back(where); });
  CHECK(other.next()->path() == "a\nb.mp4");
  CHECK_FALSE(other.next());
  CHECK(missing == std::vector{folder + "/none.jsonl"});
  std::filesystem::remove_all(folder);
}

TEST_CASE("errors.jsonl tells what was skipped, and goes when nothing was") {
  std::string folder = "/tmp/vfm-errors-XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/errors.jsonl";
  ErrorLog log(path, "vfm-test");
  log.add("a.mp4", "cannot open 'a.mp4'", {{"line", 3}});
  CHECK_FALSE(file_exists(path));
  log.finish();
  CHECK(
      read_file(path) ==
      "{\"tool\":\"vfm-test\",\"input\":\"a.mp4\",\"error\":\"cannot open 'a.mp4'\",\"line\":3}\n");
  ErrorLog(path, "vfm-test").finish();
  CHECK_FALSE(file_exists(path));
  std::filesystem::remove_all(folder);
}
