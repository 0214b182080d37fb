// SPDX-License-Identifier: Apache-2.0
#include "io/manifest.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/held_begin.h"
#include "io/places.h"
#include "support/temporary_folder.h"

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

TEST_CASE("a name that is no UTF-8 is refused with its bytes; one with a NUL names no file") {
  CHECK_THROWS_WITH(parse_record("caf\xe9 \xe2\x80.mp4", "line 1"),
                    "the name 'caf\\xE9 \\xE2\\x80.mp4' is not in UTF-8, as names in records must "
                    "be; rename it");
  CHECK(parse_record("caf\u00e9.mp4", "x").path() == "caf\u00e9.mp4");
  std::vector<std::string> bad;
  ManifestReader reader({"\xff.mp4", "a.mp4"},
                        [&](const Fault& fault) { bad.push_back(fault.message); });
  CHECK(reader.next()->path() == "a.mp4");
  CHECK_FALSE(reader.next());
  CHECK(bad.size() == 1);
  CHECK_THROWS_WITH(parse_record(R"({"kind":"video","path":"a\u0000b"})", "line 1"),
                    "the path of line 1 holds a NUL");
  CHECK_THROWS_WITH(File::open_regular(std::string("a\0b", 3)),
                    "cannot open 'a\\0b': no name of a file holds a NUL");
  CHECK_THROWS_WITH(File::open_read(std::string("/dev/null\0b", 11)),
                    "cannot open '/dev/null\\0b': no name of a file holds a NUL");
  CHECK_FALSE(file_exists(std::string("/dev/null\0b", 11)));
}

TEST_CASE("column_tars names each tar once, in order") {
  const Record joined = parse_record(
      R"({"kind":"shard","path":"a","columns":{"x":"1.tar","y":"2.tar","z":"1.tar"}})", "x");
  CHECK(column_tars(joined) == std::vector<std::string>{"1.tar", "2.tar"});
  CHECK(column_tars(parse_record("a.tar", "x")) == std::vector<std::string>{"a.tar"});
}

TEST_CASE("arguments may be paths and manifest files; bad lines are told and passed over") {
  const TemporaryFolder folder;
  const std::string file = folder / "m.jsonl";
  write_file(file, "{\"kind\":\"video\",\"path\":\"1.mp4\"}\n\n{\"oops\n2.mp4");
  std::vector<std::string> bad;
  ManifestReader reader({"0.mp4", file, "3.tar"},
                        [&](const Fault& fault) { bad.push_back(fault.input); });
  std::vector<std::string> paths;
  while (const auto record = reader.next())
    paths.push_back(record->path());
  CHECK(paths == std::vector<std::string>{"0.mp4", "1.mp4", "2.mp4", "3.tar"});
  CHECK(bad == std::vector<std::string>{fmt::format("line 3 of '{}'", file)});
  std::vector<std::string> missing;
  ManifestReader other({folder / "none.jsonl", "a\nb.mp4"},
                       [&](const Fault& fault) { missing.push_back(fault.input); });
  CHECK(other.next()->path() == "a\nb.mp4");
  CHECK_FALSE(other.next());
  CHECK(missing == std::vector{folder / "none.jsonl"});
}

TEST_CASE("what cannot be JSON is a path, also if it begins like JSON") {
  for (const char* path : {"[x].mp4", "[1] a.mp4", "{x}.mp4", "\"a\".mp4", "[[[[", "{1}"})
    CHECK(parse_record(path, "x").path() == path);
  for (const char* bad : {"[\"x\"]", "{\"kind\":\"sha", "{ \"a\"", "{}"})
    CHECK_THROWS_AS(parse_record(bad, "x"), Error);
}

namespace {

/// What a reader gives for `files`: paths, or "!" for a line that is refused.
struct Outcome {
  std::string records;
  std::string broken;
};

Outcome read_all(const std::vector<std::string>& texts) {
  const TemporaryFolder folder;
  std::vector<std::string> files;
  for (const std::string& text : texts) {
    files.push_back(folder / (std::to_string(files.size()) + ".jsonl"));
    write_file(files.back(), text);
  }
  Outcome outcome;
  ManifestReader reader(files, [&](const Fault&) { outcome.records += "! "; });
  while (const auto record = reader.next())
    outcome.records += record->path() + " ";
  outcome.broken = reader.streams().broken_off();
  for (std::size_t at; (at = outcome.broken.find(folder.path + "/")) != std::string::npos;)
    outcome.broken.erase(at, folder.path.size() + 1);
  return outcome;
}

const std::string kBeginA = R"({"kind":"begin","tool":"vfm-a","id":"1"})"
                            "\n";
const std::string kBeginB = R"({"kind":"begin","tool":"vfm-b","id":"2"})"
                            "\n";
const std::string kEndA = R"({"kind":"end","id":"1","records":1,"status":0})"
                          "\n";
const std::string kEndB = R"({"kind":"end","id":"2","records":1,"status":1})"
                          "\n";

}  // namespace

TEST_CASE("begin and end are not handed out, and each begin needs its end") {
  const auto whole = [](const std::vector<std::string>& texts) {
    const Outcome outcome = read_all(texts);
    INFO(outcome.records);
    CHECK(outcome.broken == "");
    return outcome.records;
  };
  CHECK(whole({kBeginA + "x\n" + kEndA}) == "x ");
  CHECK(whole({kBeginA + kEndA}) == "");                 // a filter took the record
  CHECK(whole({kBeginA + "x\ny\n" + kEndA}) == "x y ");  // or one was added
  CHECK(whole({"x\n" + kEndA}) == "x ");                 // or the begin taken
  CHECK(whole({"x\n"}) == "x ");
  CHECK(whole({kBeginA + "x\n" + kEndA + kBeginB + "y\n" + kEndB + kBeginA + "z\n" + kEndA}) ==
        "x y z ");
  CHECK(whole({kBeginA + kBeginB + "x\ny\n" + kEndA + kEndB}) == "x y ");  // two writers, one pipe
  CHECK(whole({kBeginA + "x\n", "y\n" + kEndA}) == "x y ");                // as split(1) leaves it
}

TEST_CASE("records name files from the folder that their begin names") {
  const auto begin = [](const std::string& id, const std::string& folder) {
    return R"({"kind":"begin","tool":"vfm-a","id":")" + id + R"(","folder":")" + folder + "\"}\n";
  };
  const auto end = [](const std::string& id) {
    return R"({"kind":"end","id":")" + id + "\",\"records\":1,\"status\":0}\n";
  };
  const std::string here = std::filesystem::current_path().string();
  CHECK(read_all({begin("1", "/data") + "x\n" + end("1")}).records == "/data/x ");
  CHECK(read_all({begin("1", here) + "x\n" + end("1")}).records == "x ");
  CHECK(read_all({begin("1", "/data") + "/y\n../x\nhttp://a/b.mp4\n" + end("1") + "x\n"}).records ==
        "/y /x http://a/b.mp4 x ");
  CHECK(read_all({begin("1", "/a") + "x\n" + end("1") + begin("2", "/b") + "x\n" + end("2")})
            .records == "/a/x /b/x ");
  // Which of the two wrote it cannot be told.
  CHECK(read_all({begin("1", "/a") + begin("2", "/b") + "x\n" + end("1") + "x\n" + end("2")})
            .records == "! /b/x ");
  CHECK(read_all({begin("1", "data") + "x\n"}).records == "! x ");
  const TemporaryFolder folder;
  const std::string record =
      R"({"kind":"shard","path":"c/a.tar","source":"raw/a.mp4","sources":["b.mp4",7],"columns":{"clip":"c/a.tar"}})";
  write_file(folder / "m.jsonl", begin("1", "/d") + record + "\n" + end("1"));
  ManifestReader reader({folder / "m.jsonl"}, [](const Fault&) {});
  CHECK(
      dump_json(reader.next()->json) ==
      R"({"kind":"shard","path":"/d/c/a.tar","source":"/d/raw/a.mp4","sources":["/d/b.mp4",7],"columns":{"clip":"/d/c/a.tar"}})");
}

TEST_CASE("what a file in a folder calls others does not depend on the working directory") {
  const std::string here = std::filesystem::current_path().string();
  CHECK(name_from("clips", "raw/a.mp4") == "../raw/a.mp4");
  CHECK(name_from("clips/", "./raw/../raw/a.mp4") == "../raw/a.mp4");
  CHECK(name_from(here + "/clips", "raw/a.mp4") == "../raw/a.mp4");
  CHECK(name_from(".", "a.tar") == "a.tar");
  CHECK(name_from("", here + "/a.tar") == "a.tar");
  CHECK(name_from("/x/y", "/x/z/a") == "../z/a");
  CHECK(name_from("/x", "https://a/b") == "https://a/b");
  CHECK(named_from("clips", "../raw/a.mp4") == "raw/a.mp4");
  CHECK(named_from("/x/clips", "../raw/a.mp4") == "/x/raw/a.mp4");
  CHECK(named_from(".", "a.tar") == "a.tar");
  CHECK(named_from("clips", "/a") == "/a");
  CHECK(named_from("clips", "https://a/b") == "https://a/b");
}

TEST_CASE("an output without its end is named, with the place where it began") {
  const auto broken = [](const std::vector<std::string>& texts) { return read_all(texts).broken; };
  const std::string one = "the output of vfm-a broke off in '0.jsonl' (no end record)";
  CHECK(broken({kBeginA}) == one);
  CHECK(broken({kBeginA + "x\n" + kBeginB + "y\n" + kEndB}) == one);
  CHECK(broken({kBeginA + "x\n" + kBeginA + "x\n" + kEndA}) == one);  // the same command again
  CHECK(broken({kBeginA, kBeginA + "x\n" + kEndA}) == one);
  CHECK(broken({kBeginA + "x\n", "y\n" + kEndB}) == one);
  CHECK(broken({kBeginA, kBeginB}) ==
        "the outputs of vfm-a in '0.jsonl', of vfm-b in '1.jsonl' broke off (no end records)");
  // A line that was cut off, and what cat puts behind it.
  const Outcome glued = read_all({kBeginA + R"({"kind":"shard","pa)" + kBeginB + "y\n" + kEndB});
  CHECK(glued.records == "! y ");
  CHECK(glued.broken == one);
  const Outcome cut = read_all({kBeginA + "x\n" + R"({"kind":"end","id":"1","rec)"});
  CHECK(cut.records == "x ! ");
  CHECK(cut.broken == one);
}

TEST_CASE("begins and ends that are none are bad lines, and how many may be open has a limit") {
  for (const char* bad :
       {R"({"kind":"begin"})", R"({"kind":"begin","tool":"a","id":7})",
        R"({"kind":"begin","tool":"a\nb","id":"1"})", R"({"kind":"begin","tool":"","id":"1"})",
        R"({"kind":"end","id":"1"})", R"({"kind":"end","id":"1","records":"1","status":0})"})
    CHECK(read_all({std::string(bad) + "\nx\n"}).records == "! x ");
  std::string many;
  for (std::size_t i = 0; i <= InputStreams::kMostOpen; ++i)
    many += kBeginA;
  const Outcome outcome = read_all({many});
  CHECK(outcome.records == "! ");
  CHECK(outcome.broken.ends_with("and 997 more broke off (no end records)"));
}

TEST_CASE("a line over 16 MiB is refused alone") {
  const std::string longest(std::size_t{16} << 20, 'x');
  CHECK(read_all({"a\n" + longest + "xxxxxxxxxxxxxxxxx\nb\n"}).records == "a ! b ");
  CHECK(read_all({"a\n" + longest + longest}).records == "a ! ");
}

TEST_CASE("a writer counts what stands between begin and end") {
  std::string path = "/tmp/vfm-writer-XXXXXX";
  const int fd = ::mkstemp(path.data());
  REQUIRE(fd >= 0);
  ManifestWriter writer(fd);
  writer.begin("vfm-a", "1");
  writer.tell("frames", 7);
  writer.write({{"kind", "video"}, {"path", "x"}});
  writer.end(0);
  ::close(fd);
  CHECK(read_file(path) == R"({"kind":"begin","tool":"vfm-a","id":"1","folder":")" +
                               std::filesystem::current_path().string() + R"("}
{"kind":"video","path":"x"}
{"kind":"end","id":"1","records":1,"frames":7,"status":0}
)");
  std::filesystem::remove(path);
}

TEST_CASE("a begin is held back until input is read, a record is written, or the end") {
  for (const int when : {0, 1, 2, 3}) {
    std::string path = "/tmp/vfm-writer-XXXXXX";
    const int fd = ::mkstemp(path.data());
    REQUIRE(fd >= 0);
    write_held_begin();  // there is none
    ManifestWriter writer(fd);
    writer.begin("vfm-a", "1");
    CHECK(read_file(path).empty());
    if (when == 0) CHECK(InputLines({"x"}).next()->text == "x");
    if (when == 1) writer.write({{"kind", "video"}, {"path", "x"}});
    if (when == 2) writer.end(0);
    if (when == 3) write_held_begin();
    CHECK(read_file(path).starts_with(R"({"kind":"begin","tool":"vfm-a","id":"1",)"));
    write_held_begin();
    CHECK(read_file(path).rfind("begin") < kBeginA.size());
    ::close(fd);
    std::filesystem::remove(path);
  }
}

TEST_CASE("a writer leaves nothing in a line that steers a terminal, and it is the same record") {
  std::string path = "/tmp/vfm-writer-XXXXXX";
  const int fd = ::mkstemp(path.data());
  REQUIRE(fd >= 0);
  const Json record = {{"path", "a\x1b[2J\x7f\u009b\u2028\u202e\u2066\u00e9\U0001f98a\n\\u202e"}};
  ManifestWriter(fd).write(record);
  ::close(fd);
  const std::string line = read_file(path);
  CHECK(line ==
        "{\"path\":\"a\\u001b[2J\\u007f\\u009b\\u2028\\u202e\\u2066\u00e9\U0001f98a\\n"
        "\\\\u202e\"}\n");
  CHECK(parse_json(line, "x") == record);
  std::filesystem::remove(path);
}

TEST_CASE("faults keep their codes in outputs; those without one have none") {
  const std::vector<Fault> faults = {
      {"a", vfm::Error("x"), vfm::Cause::decode}, {"b", "y", vfm::Cause::duplicate}, {"c", "z"}};
  const std::vector<Fault> back = parse_faults(to_json(faults));
  REQUIRE(back.size() == 3);
  CHECK(back[0].cause == vfm::Cause::decode);
  CHECK(back[1].cause == vfm::Cause::duplicate);
  CHECK(back[2].cause == vfm::Cause::other);
  CHECK(parse_faults({{{"input", "a"}, {"error", "x"}}})[0].cause == vfm::Cause::other);
  CHECK(vfm::to_string(vfm::Cause::duplicate) == "duplicate");
}

TEST_CASE("errors.jsonl tells what was skipped, and goes when nothing was") {
  const TemporaryFolder folder;
  const std::string path = folder / "errors.jsonl";
  ErrorLog log(path, "vfm-test");
  log.add({"a.mp4", vfm::Error("cannot open 'a.mp4'", vfm::Cause::open), vfm::Cause::format});
  CHECK_FALSE(file_exists(path));
  log.finish();
  CHECK(read_file(path) ==
        "{\"tool\":\"vfm-test\",\"input\":\"a.mp4\",\"error\":\"cannot open 'a.mp4'\","
        "\"code\":\"open\"}\n");
  ErrorLog(path, "vfm-test").finish();
  CHECK_FALSE(file_exists(path));
  // Two at once: what one tells stays, whether or not the other has something to tell.
  ErrorLog clean(path, "vfm-test");
  log.finish();
  clean.finish();
  CHECK(read_file(path).find("a.mp4") != std::string::npos);
  clean.add({"b.mp4", "cannot open 'b.mp4'"});
  ErrorLog again(path, "vfm-test");
  log.finish();
  clean.finish();
  CHECK(read_file(path).find("a.mp4") != std::string::npos);
  CHECK(read_file(path).find("b.mp4") != std::string::npos);
  clean.finish();  // keeps what it found there at the first time
  CHECK(read_file(path).find("a.mp4") != std::string::npos);
  CHECK(read_file(path).find("b.mp4") != std::string::npos);
  again.finish();  // those came while it ran
  CHECK(file_exists(path));
  ErrorLog(path, "vfm-test").finish();
  CHECK_FALSE(file_exists(path));
}

TEST_CASE("an error of any length is listed, shortened") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/errors.jsonl";
  ErrorLog log(path, "vfm-test");
  constexpr std::size_t kLongest = std::size_t{256} << 10;
  const std::string long_path(5 << 20, 'p'), odd(1 << 20, '\x01');
  log.add({long_path, "cannot open '" + long_path + "': File name too long"});
  log.add({odd, odd});
  log.add({"a.mp4", "short"});
  log.finish();
  std::istringstream lines(read_file(path));
  std::string line;
  REQUIRE(std::getline(lines, line));
  CHECK(parse_json(line, path)["input"] == long_path.substr(0, kLongest) + "...");
  REQUIRE(std::getline(lines, line));
  CHECK(parse_json(line, path)["input"] == odd.substr(0, kLongest) + "...");
  CHECK(parse_json(line, path)["error"] == odd.substr(0, kLongest) + "...");
  REQUIRE(std::getline(lines, line));
  CHECK(parse_json(line, path)["error"] == "short");
  CHECK_FALSE(std::getline(lines, line));
}
