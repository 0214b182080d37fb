// What a job of columns reads, keeps and makes again; what ends it, and what is one shard's fault.
// SPDX-License-Identifier: Apache-2.0
#include "columns/column_job.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "support/heard_log.h"
#include "support/temporary_folder.h"
#include "tensor/device.h"
#include "unit/columns/column_cases.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

/// A job that gives each sample its txt in capitals, or `word`.
struct WordJob {
  explicit WordJob(const TemporaryFolder& folder_of) : folder(folder_of) {
    job.tool = "vfm-test";
    job.column = "test";
    job.settings = [this](const io::Record&) { return Json{{"word", word}}; };
    job.fill = [this](const io::Record&, shard::JoinedReader& reader, shard::Writer& writer,
                      ColumnNotes& notes) {
      ++filled;
      shard::Sample sample;
      while (reader.next(sample)) {
        const std::string* txt = sample.find("txt");
        writer.add(shard::Sample{sample.key, {{"word", word.empty() ? *txt : word}}});
      }
      note(notes);
    };
  }

  /// The number of errors.
  long run(const std::vector<std::string>& inputs) {
    filled = 0;
    Run one;
    job.progress = &one;
    const long errors = run_column_job(job, inputs, one.slots, one.manifest);
    records = one.records();
    kept = one.done;
    return errors;
  }

  const TemporaryFolder& folder;
  ColumnJob job;
  std::string word;
  std::function<void(ColumnNotes&)> note = [](ColumnNotes&) {};
  int filled = 0;
  std::uint64_t kept = 0;
  std::vector<Json> records;
};

std::string write_shard(const TemporaryFolder& folder, const std::string& name,
                        const std::string& txt = "a") {
  write_tar(folder / name, {{"k", {{"txt", txt}}}, {"l", {{"txt", txt + txt}}}});
  return folder / name;
}

std::string error_at(const TemporaryFolder& folder, std::size_t i) {
  return errors_in(folder / "test-errors.jsonl").at(i)["error"];
}

}  // namespace

TEST_CASE("a shard that fails is recorded, a GPU that fails ends the run") {
  const TemporaryFolder folder;
  const std::vector<std::string> tars{write_shard(folder, "a.tar"), write_shard(folder, "b.tar")};
  WordJob of(folder);
  of.note = [](ColumnNotes&) { fail("its vectors are no numbers"); };
  CHECK(of.run(tars) == 2);
  CHECK(of.filled == 2);
  CHECK(of.records.empty());
  const std::vector<Json> errors = errors_in(folder / "test-errors.jsonl");
  REQUIRE(errors.size() == 2);
  CHECK(errors[1] == Json{{"tool", "vfm-test"},
                          {"input", folder / "b.tar"},
                          {"error", "its vectors are no numbers"},
                          {"code", "other"}});
  of.note = [](ColumnNotes&) { throw GpuError("cannot copy: unspecified launch failure"); };
  CHECK_THROWS_AS(of.run(tars), GpuError);
  CHECK(of.filled == 1);
}

TEST_CASE("a column is described by its record and by the notes beside it") {
  const TemporaryFolder folder;
  const std::string tar = write_shard(folder, "a.tar");
  folder.write("read.txt", "words");
  const std::string mine = folder / "a.test.tar";
  folder.write(
      "in.jsonl",
      dump_json(
          {{"kind", "shard"}, {"path", tar}, {"mine", 7}, {"test_count", 1}, {"test_gone", 2}}) +
          "\n{\"kind\":\"video\",\"path\":\"v\"}\n");
  WordJob of(folder);
  of.job.record_fields = {"test_count", "test_gone"};
  of.note = [&](ColumnNotes& notes) {
    notes.errors.emplace_back("k", "is bad", Cause::decode);
    notes.inputs[folder / "read.txt"] = hash_hex("words");
    notes.inputs[folder / "none.txt"] = nullptr;
    notes.of_record["test_count"] = 3;
  };
  std::vector<std::string> done;
  of.job.done = [&](const io::Record& record) { done.push_back(record.path()); };
  std::vector<std::string> ended;
  of.job.ended = [&](const std::string& why) { ended.push_back(why); };
  CHECK(of.run({folder / "in.jsonl"}) == 1);
  CHECK(done == std::vector<std::string>{tar});
  CHECK(ended == std::vector<std::string>{""});
  const std::string bytes = io::read_file(tar);
  REQUIRE(of.records.size() == 2);
  const Json record = {{"kind", "shard"},
                       {"path", tar},
                       {"mine", 7},
                       {"samples", 2},
                       {"bytes", bytes.size()},
                       {"xxh3", hash_hex(bytes)},
                       {"test_count", 3},
                       {"columns", {{"clip", tar}, {"test", mine}}}};
  CHECK(dump_json(of.records[0]) == dump_json(record));
  CHECK(of.records[1] == Json{{"kind", "video"}, {"path", "v"}});
  CHECK(of.kept == 0);
  const std::string made = io::read_file(mine);
  const Json notes = {
      {"tool", "vfm-test"},
      {"made_from",
       {{"settings", {{"word", ""}}},
        {"sources", Json::array({{{"bytes", bytes.size()}, {"xxh3", hash_hex(bytes)}}})}}},
      {"record",
       {{"kind", "shard"}, {"samples", 2}, {"bytes", made.size()}, {"xxh3", hash_hex(made)}}},
      {"inputs", {{"read.txt", hash_hex("words")}, {"none.txt", nullptr}}},
      {"errors", Json::array({{{"input", "k"}, {"error", "is bad"}, {"code", "decode"}}})},
      {"of_record", {{"test_count", 3}}}};
  CHECK(parse_json(io::read_file(folder / "a.test.json"), "it") == notes);
  // Kept, with its errors and record.
  CHECK(of.run({folder / "in.jsonl"}) == 1);
  CHECK(of.filled == 0);
  CHECK(of.kept == 2);
  CHECK(dump_json(of.records[0]) == dump_json(record));
  CHECK(error_at(folder, 0) == "is bad");
}

TEST_CASE("a column is made again where something of it changed, and then alone") {
  const TemporaryFolder folder;
  const std::string tar = write_shard(folder, "a.tar");
  folder.write("read.txt", "words");
  WordJob of(folder);
  of.note = [&](ColumnNotes& notes) {
    const std::string path = folder / "read.txt";
    notes.inputs[path] = io::file_exists(path) ? Json(io::hash_file(path)) : Json();
  };
  const auto made = [&] {
    CHECK(of.run({tar}) == 0);
    const int times = of.filled;
    CHECK(of.run({tar}) == 0);
    CHECK(of.filled == (of.job.force ? 1 : 0));
    return times == 1;
  };
  CHECK(made());
  CHECK_FALSE(made());
  folder.write("read.txt", "other words");
  CHECK(made());
  std::filesystem::remove(folder / "read.txt");
  CHECK(made());
  folder.write("read.txt", "back");
  CHECK(made());
  of.word = "x";
  CHECK(made());
  CHECK(*samples_of(folder / "a.test.tar")[1].find("word") == "x");
  of.word = "";
  write_shard(folder, "a.tar", "b");
  CHECK(made());
  CHECK(*samples_of(folder / "a.test.tar")[1].find("word") == "bb");
  std::filesystem::remove(folder / "a.test.tar.idx");
  CHECK(made());
  folder.write("a.test.tar", "short");
  CHECK(made());
  folder.write("a.test.json", "{");
  CHECK(made());
  of.job.force = true;
  CHECK(made());
}

TEST_CASE("samples without a server's answer are made again, others' errors are kept") {
  CHECK(unanswered({"k", "x", Cause::server}));
  CHECK(unanswered({"k", "x", Cause::rejected}));
  CHECK_FALSE(unanswered({"k", "x", Cause::answer}));
  CHECK_FALSE(unanswered({"k", "x"}));
  const TemporaryFolder folder;
  const std::string tar = write_shard(folder, "a.tar");
  for (const Cause cause : {Cause::server, Cause::rejected, Cause::answer}) {
    WordJob of(folder);
    of.word = std::string(to_string(cause));
    of.note = [=](ColumnNotes& notes) {
      notes.errors.emplace_back("j", "fine");
      notes.errors.emplace_back("k", "no answer", cause);
    };
    CHECK(of.run({tar}) == 2);
    CHECK(of.run({tar}) == 2);
    CHECK(of.filled == (cause == Cause::answer ? 0 : 1));
  }
}

TEST_CASE("tars of columns that are not read, and the column's own, change nothing") {
  const TemporaryFolder folder;
  const std::string tar = write_shard(folder, "a.tar");
  WordJob of(folder);
  of.job.column = "caption";
  of.job.unread = {"embed"};
  CHECK(of.run({tar}) == 0);
  write_tar(folder / "a.embed.tar", {{"other", {{"npy", "x"}}}});
  CHECK(of.run({tar}) == 0);
  CHECK(of.filled == 0);
  CHECK(of.records[0]["columns"] == Json{{"clip", tar},
                                         {"caption", folder / "a.caption.tar"},
                                         {"embed", folder / "a.embed.tar"}});
  // One that is read must have the same samples.
  write_tar(folder / "a.score.tar", {{"other", {{"npy", "x"}}}});
  CHECK(of.run({tar}) == 1);
}

TEST_CASE("columns that are lost are told, unless they are replaced on demand") {
  const TemporaryFolder folder;
  const std::string tar = write_shard(folder, "a.tar"), column = folder / "a.test.tar";
  WordJob of(folder);
  of.job.origins = [&](const std::string& path) {
    std::map<std::string, std::int64_t> counts;
    for (const shard::Sample& sample : samples_of(path))
      ++counts[*sample.find("word")];
    return counts;
  };
  const auto told = [&](const std::string& word) {
    of.word = word;
    const HeardLog lines;
    CHECK(of.run({tar}) == 0);
    CHECK(of.filled == 1);
    return lines.text();
  };
  CHECK(told("x") == "");
  CHECK(told("") == "'" + column +
                        "' is replaced: 2 of its samples were made from x, and 0 are "
                        "now\n");
  CHECK(told("a") == "'" + column +
                         "' is replaced: 1 of its samples were made from aa, and 0 are "
                         "now\n");
  of.job.force = true;
  CHECK(told("y") == "");
  of.job.force = false;
  write_shard(folder, "a.tar", "c");  // of another shard
  CHECK(told("z") == "");
  folder.write("a.test.tar", "damaged");
  CHECK_THAT(told("w"), !Catch::Contains("is replaced"));
  folder.write("a.test.json", "[]");
  CHECK(told("v") == "");
  folder.write("a.test.json", "{\"made_from\": 7}");
  CHECK(told("u") == "");
}

TEST_CASE("bad records and shards cost themselves alone, in the order of the input") {
  const TemporaryFolder folder;
  const std::string a = write_shard(folder, "a.tar"), b = write_shard(folder, "b.tar", "b");
  folder.write("other/a.tar", io::read_file(b));
  folder.write("bad.tar", "no tar");
  const auto line = [](const std::string& path) {
    return dump_json({{"kind", "shard"}, {"path", path}}) + "\n";
  };
  folder.write("in.jsonl", "{\"kind\":7}\n" + line(a) + "{\"kind\":\"shard\",\"n\":1}\n" + line(a) +
                               line(folder / "other/a.tar") + line(folder / "bad.tar") +
                               line(folder / "gone/none.tar") + line(b) + "{\"kind\"\n");
  WordJob of(folder);
  of.job.directory = folder / "out";
  CHECK(of.run({folder / "in.jsonl"}) == 7);
  CHECK(of.filled == 2);
  REQUIRE(of.records.size() == 2);
  CHECK(of.records[0]["columns"]["test"] == folder / "out/a.test.tar");
  CHECK(of.records[1]["path"] == b);
  const std::vector<Json> errors = errors_in(folder / "out/test-errors.jsonl");
  REQUIRE(errors.size() == 7);
  const auto at = [&](std::size_t i, const char* field) {
    return errors[i][field].get<std::string>();
  };
  CHECK_THAT(at(0, "input"), Catch::Contains("line 1"));
  CHECK(at(0, "code") == "line");
  CHECK(at(1, "error") == "the shard record has no 'path'");
  CHECK(at(1, "code") == "line");
  CHECK(at(2, "input") == a);
  CHECK(at(2, "error") == "is in the input twice");
  CHECK(at(2, "code") == "duplicate");
  CHECK(at(3, "error") == "its column would replace that of '" + a + "': both are '" + folder.path +
                              "/out/a.test.tar'");
  CHECK(at(4, "input") == folder / "bad.tar");
  CHECK(at(5, "input") == folder / "gone/none.tar");
  CHECK(at(5, "code") == "open");
  CHECK_THAT(at(6, "input"), Catch::Contains("line 9"));
}

TEST_CASE("the errors are where the columns are, and a folder that is not there is not made") {
  const TemporaryFolder folder;
  const std::string a = write_shard(folder, "a.tar");
  WordJob of(folder);
  CHECK(of.run({folder / "gone/none.tar", a}) == 1);
  CHECK(of.records.size() == 1);
  CHECK(errors_in(folder / "test-errors.jsonl").size() == 1);
  CHECK_FALSE(std::filesystem::exists(folder / "gone"));
  CHECK(of.run({a}) == 0);
  CHECK_FALSE(io::file_exists(folder / "test-errors.jsonl"));
  folder.write("in.jsonl", "{\"kind\":\"video\",\"path\":\"v\"}\n");
  of.job.directory = folder / "out";
  CHECK_THROWS_WITH(of.run({folder / "in.jsonl"}),
                    "the input has no shard; vfm-clip makes shards of videos");
}

TEST_CASE("a shard of which no sample can be used gets no column, for the last reason") {
  const TemporaryFolder folder;
  const std::string a = write_shard(folder, "a.tar");
  WordJob of(folder);
  of.job.fill = [&](const io::Record&, shard::JoinedReader&, shard::Writer&, ColumnNotes& notes) {
    notes.errors.emplace_back("k", "first", Cause::decode);
    notes.errors.emplace_back("l", "last", Cause::limit);
  };
  CHECK(of.run({a}) == 1);
  CHECK(error_at(folder, 0) == "no sample of it can be used: last");
  CHECK(errors_in(folder / "test-errors.jsonl")[0]["code"] == "limit");
  // What a record says of its tar must be true.
  const std::string bytes = io::read_file(a);
  folder.write("in.jsonl", dump_json({{"kind", "shard"},
                                      {"path", a},
                                      {"bytes", bytes.size()},
                                      {"xxh3", std::string(32, '0')}}) +
                               "\n");
  WordJob other(folder);
  CHECK(other.run({folder / "in.jsonl"}) == 1);
  CHECK(other.filled == 0);
  CHECK(errors_in(folder / "test-errors.jsonl")[0]["input"] == a);
}

TEST_CASE("members over a limit are refused, and a column is made again under another") {
  const TemporaryFolder folder;
  const std::string a = write_shard(folder, "a.tar", "ab");
  WordJob of(folder);
  of.job.limits.member = 3;
  CHECK(of.run({a}) == 1);
  CHECK(samples_of(folder / "a.test.tar").size() == 1);
  CHECK(parse_json(io::read_file(folder / "a.test.json"), "it")["max_member"] == 3);
  CHECK(of.run({a}) == 1);
  CHECK(of.filled == 0);
  of.job.limits.member = 4;
  CHECK(of.run({a}) == 0);
  CHECK(of.filled == 1);
  CHECK_FALSE(parse_json(io::read_file(folder / "a.test.json"), "it").contains("max_member"));
}
