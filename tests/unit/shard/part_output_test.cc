// The work of a program on its parts: what ends a part, and what a part leaves when its work fails.
// SPDX-License-Identifier: Apache-2.0
#include "shard/part_output.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/store.h"
#include "parts/part_notes.h"
#include "support/heard_log.h"
#include "support/part_leases.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::shard;

namespace {

/// Two parts of vfm-embed, whose work is `make`.
struct PartsOfWork {
  TemporaryFolder folder;
  io::FileStore store{folder / "parts"};
  PartSteps steps;
  std::string digest = "d";
  std::string log;

  PartsOfWork() {
    steps.digest_of = [&](int, int) { return digest; };
  }
  long work(int part) {
    PartTask task{folder.path, "embed", parts::fixed_part(part, 2), {{"vfm", "1"}}};
    task.choice.lease_seconds = 0.02;
    const io::File file(::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644),
                        folder / "out");
    io::ManifestWriter out(file.fd());
    const HeardLog heard;
    const struct Heard {
      std::string& log;
      ~Heard() { log = HeardLog::text(); }
    } keep{log};
    return for_each_part(task, out, steps);
  }
  std::string printed() const { return io::read_file(folder / "out"); }
  std::vector<std::string> files(int part) const {
    return store.list("embed/" + parts::part_name(part));
  }
  Json failed(int part) const {
    return parse_json(store.read("embed/" + parts::part_name(part) + "/failed.json")->contents, "");
  }
  Json record() const { return {{"kind", "shard"}, {"path", folder / "a.tar"}, {"bytes", 3}}; }
};

using FileNames = std::vector<std::string>;

}  // namespace

TEST_CASE("a part is complete with its records, errors and outputs, and is then only printed") {
  PartsOfWork of;
  of.folder.write("a.tar", "abc");
  int made = 0;
  of.steps.make = [&](const parts::Part& part, const PartShards& shards, PartOutput& output) {
    ++made;
    CHECK(part.number() == 1);
    CHECK(shards.parts == 2);
    output.record(of.record());
    output.wrote_file(of.folder / "a.tar");
    output.wrote(of.folder / "b.tar", {{"bytes", 7}, {"xxh3", "77"}});
    output.fault({"x", "it is bad", Cause::decode});
    output.fault({"y", "it is bad", Cause::decode});
    CHECK_FALSE(output.fails());
    return io::InputStreams();
  };
  CHECK(of.work(1) == 0);
  CHECK(of.files(1) == FileNames{"done.json", "errors.jsonl", "manifest.jsonl"});
  const std::string printed = of.printed();
  CHECK(printed == dump_json(of.record()) + "\n");
  CHECK(io::read_file(of.folder / "parts/embed/00001/manifest.jsonl") ==
        R"({"kind":"shard","path":"a.tar","bytes":3})"
        "\n");
  const auto marker = parts::read_marker(of.store, "embed/00001/done.json");
  REQUIRE(marker);
  CHECK(marker->results.records == 1);
  CHECK(marker->results.errors == std::map<std::string, std::uint64_t>{{"decode", 2}});
  REQUIRE(marker->results.outputs.size() == 2);
  CHECK(marker->results.outputs[0].path == "a.tar");
  CHECK(marker->results.outputs[0].bytes == 3);
  CHECK(marker->results.outputs[0].xxh3 == io::hash_file(of.folder / "a.tar"));
  CHECK(marker->results.outputs[1].path == "b.tar");
  CHECK(of.work(1) == 0);
  CHECK(made == 1);
  CHECK(of.printed() == printed);
  of.digest = "of other inputs";
  CHECK(of.work(1) == 0);
  CHECK(made == 2);
}

TEST_CASE("a fault that may pass leaves the part for another time, with the first reason") {
  PartsOfWork of;
  bool of_machine = false;
  Cause cause = Cause::memory;
  std::string why = "no memory";
  of.steps.make = [&](const parts::Part&, const PartShards&, PartOutput& output) {
    output.fault({"x", "it is bad", Cause::decode});
    output.fault({"y.mp4", why, cause}, of_machine);
    output.fault({"z.mp4", "it has none either", cause}, of_machine);
    CHECK(output.fails() == (cause == Cause::memory || of_machine));
    return io::InputStreams();
  };
  CHECK(of.work(0) == 2);
  CHECK(of.files(0) == FileNames{"errors.jsonl", "failed.json"});
  CHECK(of.failed(0).at("why") == "y.mp4: no memory");
  CHECK(of.log.find("part 0 of '" + of.folder.path + "' is not complete, as errors may pass") !=
        std::string::npos);
  cause = Cause::open, of_machine = true;
  why = "cannot open 'y.mp4'";
  CHECK(of.work(0) == 2);
  CHECK(of.failed(0).at("why") == why);
  of_machine = false;
  CHECK(of.work(0) == 0);
  CHECK(of.files(0) == FileNames{"done.json", "errors.jsonl", "manifest.jsonl"});
}

TEST_CASE("a part whose work ends with an error is given back with the reason") {
  PartsOfWork of;
  ErrorKind kind = ErrorKind::runtime;
  of.steps.make = [&](const parts::Part&, const PartShards&,
                      PartOutput& output) -> io::InputStreams {
    output.record(of.record());
    throw Error("another rank has ended", kind);
  };
  for (const ErrorKind each : {ErrorKind::runtime, ErrorKind::device, ErrorKind::usage}) {
    kind = each;
    CHECK_THROWS_WITH(of.work(0), "another rank has ended");
    CHECK(of.files(0) == FileNames{"failed.json"});
    CHECK(of.failed(0).at("why") == "another rank has ended");
  }
}

TEST_CASE("a part that another process has taken is left to it, and is no success") {
  PartsOfWork of;
  bool fails = true;
  of.steps.make = [&](const parts::Part& part, const PartShards&, PartOutput& output) {
    of.store.create("embed/00000/lease-2-0", parts::lease_text(parts::kFarProcess, 60));
    for (int tries = 0; tries < 1000 && !part.lost(); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (fails) fail("its files have gone");
    output.record(of.record());
    return io::InputStreams();
  };
  CHECK(of.work(0) == 1);
  CHECK(of.log.find("its files have gone; the part is left") != std::string::npos);
  CHECK(of.store.facts("embed/00000/lease-2-0"));
  CHECK_FALSE(of.store.facts("embed/00000/failed.json"));
  for (const char* lease : {"embed/00000/lease-1-0", "embed/00000/lease-2-0"})
    of.store.remove(lease);
  fails = false;  // All was made, but too late.
  CHECK(of.work(0) == 1);
  CHECK(of.log.find("part 0 was taken by process 12 on far") != std::string::npos);
  CHECK_FALSE(of.store.facts("embed/00000/done.json"));
  CHECK_FALSE(of.store.facts("embed/00000/failed.json"));
  CHECK(parts::read_notes(of.store, "embed").empty());
  CHECK(of.printed().empty());
}

TEST_CASE("a part whose input broke off is not complete") {
  PartsOfWork of;
  of.folder.write("cut.jsonl", R"({"kind":"begin","tool":"find","id":"1"})"
                               "\n");
  of.steps.make = [&](const parts::Part&, const PartShards&, PartOutput&) {
    io::ManifestReader reader({of.folder / "cut.jsonl"}, [](const io::Fault&) {});
    while (reader.next()) {
    }
    return reader.streams();
  };
  CHECK_THROWS_WITH(of.work(0), Catch::Contains("the part is not complete"));
  CHECK(of.files(0) == FileNames{"failed.json"});
}
