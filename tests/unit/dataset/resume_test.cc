// A second run of vfm-shard into a folder: what stays, what goes, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "dataset_run.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

/// Eight samples of four sources, two samples in a shard.
struct Resumed : DatasetRun {
  Resumed() {
    options.split = {{"train", 0.5}, {"val", 0.5}};
    options.shard_bytes = 1024 + 2 * 2048;
    for (int shard = 0; shard < 2; ++shard)
      add(fmt::format("in{}", shard), samples_of(shard));
  }
  static std::vector<shard::Sample> samples_of(int shard) {
    std::vector<shard::Sample> list;
    for (int i = 4 * shard; i < 4 * shard + 4; ++i)
      list.push_back(video(fmt::format("k{}", i), fmt::format(R"({{"source":"s{}"}})", i / 2)));
    return list;
  }
  /// The files with the number of each, which a file that is written again has no more.
  std::map<std::string, std::pair<ino_t, std::string>> state() const {
    std::map<std::string, std::pair<ino_t, std::string>> all;
    for (const std::string& file : files()) {
      struct stat status {};
      REQUIRE(::stat((options.output + "/" + file).c_str(), &status) == 0);
      all[file] = {status.st_ino, io::read_file(options.output + "/" + file)};
    }
    return all;
  }
  std::map<std::string, std::string> splits() const {
    std::map<std::string, std::string> all;
    for (const auto& [key, meta] : samples())
      all[key] = meta["split"];
    return all;
  }
  void write(const std::string& name, const std::string& bytes) const {
    folder.write("out/" + name, bytes);
  }
};

bool is_shard(const std::string& file) {
  return file.find("-00000") != std::string::npos;
}

}  // namespace

TEST_CASE("a second run with the same input writes no shard again, but those that are damaged") {
  Resumed run;
  CHECK(run.run() == 0);
  const auto before = run.state();
  const std::vector<Json> records = run.records;
  REQUIRE(records.size() == 4);
  CHECK(run.keys() == "k0 k1 k2 k3 k4 k5 k6 k7");
  run.level = LogLevel::info;
  CHECK(run.run() == 0);
  CHECK(run.records == records);
  CHECK(run.log.find("is there") == std::string::npos);
  CHECK(run.state() == before);
  const std::string tar = records[1]["path"].get<std::string>().substr(4);
  run.write(tar, before.at(tar).second.substr(0, 1000));
  std::filesystem::remove(run.folder / run.records[2]["path"].get<std::string>());
  CHECK(run.run() == 0);
  CHECK(run.records == records);
  for (const auto& [file, state] : run.state())
    CHECK(before.at(file).second == state.second);
}

TEST_CASE("with other input the shards that fit stay, the others go, and no source changes sides") {
  Resumed run;
  CHECK(run.run() == 0);
  const auto before = run.state();
  const auto splits = run.splits();
  // A sample of val less, and a source more, which val lacks.
  std::vector<shard::Sample> other;
  for (const int shard : {0, 1})
    for (const shard::Sample& sample : Resumed::samples_of(shard))
      if (sample.key != "k3") other.push_back(sample);
  REQUIRE(splits.at("k3") == "val");
  other.push_back(video("new", R"({"source":"s9"})"));
  run.folder.write("in1.tar", tar_of(other));
  run.options.inputs = {run.folder / "in1.tar"};
  run.level = LogLevel::info;
  CHECK(run.run() == 0);
  CHECK(run.keys() == "k0 k1 k2 k4 k5 k6 k7 new");
  for (const auto& [key, split] : run.splits())
    if (key != "new") CHECK(splits.at(key) == split);
  const auto after = run.state();
  const Json plan = run.json("out/plan.json");
  std::size_t stay = 0, shards = 0;
  for (const auto& [file, state] : after) {
    if (!is_shard(file) || !file.ends_with(".tar")) continue;
    ++shards;
    stay += before.contains(file) && before.at(file).first == state.first;
  }
  CHECK(stay == 3);
  CHECK(shards == plan["shards"].size());
  CHECK(run.log.find(fmt::format("'out' is there: {} of its 4 shards stay", stay)) == 0);
  // Beside each tar its indexes and its record, and of those that went nothing.
  CHECK(std::ranges::count_if(after, [](const auto& one) { return is_shard(one.first); }) ==
        static_cast<std::ptrdiff_t>(4 * shards));
  // The sources that are missing keep their part.
  CHECK(run.lines("out/sources.jsonl").size() == 5);

  // All of one split are gone: its folder is, too, and so is what named its shards.
  Resumed less;
  CHECK(less.run() == 0);
  std::vector<shard::Sample> kept;
  for (int shard = 0; shard < 2; ++shard)
    for (const shard::Sample& sample : Resumed::samples_of(shard))
      if (less.splits().at(sample.key) == "val") kept.push_back(sample);
  less.folder.write("in0.tar", tar_of(kept));
  less.options.inputs.pop_back();
  CHECK(less.run() == 0);
  CHECK(less.log ==
        "split 'train' is empty: an earlier run assigned all sources, and they stay; --force "
        "assigns all sources again\n");
  for (const std::string& file : less.files())
    CHECK_FALSE(file.starts_with("train/"));
  CHECK_FALSE(io::file_exists(less.options.output + "/train"));
}

TEST_CASE("--force replaces a dataset of other options, all its shards and its splits") {
  Resumed run;
  CHECK(run.run() == 0);
  const auto before = run.state();
  run.options.seed = 3;
  run.options.rekey = true;
  const std::string what =
      "'out' holds a dataset of other options (rekey is false there, and now "
      "true; seed is 0 there, and now 3); choose another folder, or --force "
      "to replace it";
  CHECK(run.refused() == what);
  CHECK(run.state() == before);
  run.options.force = true;
  CHECK(run.run() == 0);
  const auto replaced = run.state();
  run.remove_output();
  CHECK(run.run() == 0);
  const auto fresh = run.state();
  REQUIRE(fresh.size() == replaced.size());
  for (const auto& [file, state] : fresh)
    CHECK(replaced.at(file).second == state.second);
  CHECK(fresh != before);
  // What only the earlier options name differs, too.
  run.options.force = false;
  run.options.seed = 0;
  run.options.rekey = false;
  run.options.near_member = "text.npy";
  run.remove_output();
  run.folder.write("v.tar", tar_of({video("v", "{}", {}, {{"text.npy", vector_of({1, 0})}})}));
  run.options.inputs.push_back(run.folder / "v.tar");
  CHECK(run.run() == 0);
  run.options.near_member.clear();
  CHECK(run.refused() ==
        "'out' holds a dataset of other options (near_duplicates is \"text.npy\" "
        "there, and now null); choose another folder, or --force to replace it");
}

TEST_CASE("a folder whose plan or sources cannot be read is refused, and nothing outside it goes") {
  Resumed run;
  CHECK(run.run() == 0);
  const std::string plan = io::read_file(run.folder / "out/plan.json"),
                    sources = io::read_file(run.folder / "out/sources.jsonl");
  std::string said;
  for (const char* wrong : {"x", "[]", "{}", R"({"plan":"1"})", R"({"plan":"1","shards":{}})",
                            R"({"plan":"1","shards":[{}]})", R"({"plan":"1","shards":[]})",
                            R"({"plan":"1","shards":[],"options":[]})"}) {
    run.write("plan.json", wrong);
    said += run.refused() + "\n";
  }
  CHECK(said ==
        "'out/plan.json' is not JSON: column 1: syntax error while parsing value - invalid "
        "literal; last read: 'x'; choose another folder, or --force to replace it\n"
        "'out/plan.json' has no 'plan'; choose another folder, or --force to replace it\n"
        "'out/plan.json' has no 'plan'; choose another folder, or --force to replace it\n"
        "'out/plan.json' has no shards; choose another folder, or --force to replace it\n"
        "'out/plan.json' has no shards; choose another folder, or --force to replace it\n"
        "'out/plan.json' has no 'path'; choose another folder, or --force to replace it\n"
        "'out' holds a dataset whose plan.json does not list its options; choose another "
        "folder, or --force to replace it\n"
        "'out' holds a dataset whose plan.json does not list its options; choose another "
        "folder, or --force to replace it\n");
  run.write("plan.json", plan);
  std::filesystem::remove(run.folder / "out/sources.jsonl");
  said = run.refused() + "\n";
  run.write("sources.jsonl", "{}\n");
  said += run.refused() + "\n";
  CHECK(said ==
        "cannot open 'out/sources.jsonl': No such file or directory: it says in which split "
        "each source is; put it back, or give --force to assign all sources again\n"
        "line 1 of 'out/sources.jsonl' has no 'source': it says in which split each source "
        "is; put it back, or give --force to assign all sources again\n");
  run.write("sources.jsonl", sources);
  // A plan that names files elsewhere, and none of ours.
  run.folder.write("outside.tar", "tar");
  run.write("mine.txt", "text");
  Json named = parse_json(plan, "plan");
  named["plan"] = "another";
  for (const std::string& path :
       {std::string("../outside.tar"), run.folder / "outside.tar", std::string("mine.txt")})
    named["shards"].push_back({{"path", path}, {"plan", "1"}});
  named["shards"].push_back({{"path", "train/gone/gone-000000.tar"}});
  run.write("plan.json", dump_json(named));
  run.write("train/gone/gone-000000.tar", "old");
  run.write("train/gone/.gone-000000.tar.tmp", "old");
  run.level = LogLevel::info;
  CHECK(run.run() == 0);
  CHECK(run.log.starts_with("'out' is there: 4 of its 5 shards stay\n"));
  CHECK(run.text("outside.tar") == "tar");
  CHECK(run.text("out/mine.txt") == "text");
  CHECK_FALSE(io::file_exists(run.folder / "out/train/gone"));
  CHECK(run.text("out/plan.json") == plan);
}

TEST_CASE("a shard's place that is taken, other sources, and an input within are refused") {
  Resumed run;
  CHECK(run.run() == 0);
  const auto before = run.state();
  const std::string tar = run.records[0]["path"];
  std::filesystem::remove(run.folder / "out/plan.json");
  CHECK(run.refused() == "'" + tar +
                             "' is where a shard would be written; choose another folder, "
                             "or --force to replace it");
  run.options.force = true;
  CHECK(run.run() == 0);
  run.options.force = false;
  Resumed other;
  other.options.inputs.clear();
  other.add("o", {video("k0", R"({"source":"o"})"), video("k1", R"({"source":"p"})")});
  other.options.output = run.options.output;
  const std::string foreign = other.refused();
  CHECK(run.plain(foreign) ==
        "'out' holds a dataset of other sources; choose another folder, or --force to replace it");
  run.options.inputs = {run.folder / tar};
  for (const bool force : {false, true}) {
    run.options.force = force;
    CHECK(run.refused() == "'" + tar +
                               "' is an input and a part of the dataset that would be replaced; "
                               "choose another folder");
  }
  for (const auto& [file, state] : run.state())
    if (is_shard(file)) CHECK(before.at(file).second == state.second);
}

TEST_CASE("what is taken out of a dataset is forgotten, and comes back when it is named no more") {
  Resumed run;
  CHECK(run.run() == 0);
  const auto splits = run.splits();
  run.folder.write("without", "s1\nk4\n");
  run.options.without = run.folder / "without";
  CHECK(run.run() == 0);
  CHECK(run.log.empty());
  CHECK(run.keys() == "k0 k1 k5 k6 k7");
  CHECK(run.text("out/left_out.jsonl") ==
        "{\"key\":\"k2\",\"reason\":\"without\",\"by\":\"source\",\"line\":\"s1\"}\n"
        "{\"key\":\"k3\",\"reason\":\"without\",\"by\":\"source\",\"line\":\"s1\"}\n"
        "{\"key\":\"k4\",\"reason\":\"without\",\"by\":\"key\",\"line\":\"k4\"}\n");
  CHECK(run.text("out/sources.jsonl").find("s1") == std::string::npos);
  for (const auto& [key, split] : run.splits())
    CHECK(splits.at(key) == split);
  CHECK(run.json("out/dataset.json")["left_out"] == Json{{"balance", 0}, {"without", 3}});
  run.options.without.clear();
  CHECK(run.run() == 0);
  CHECK(run.keys() == "k0 k1 k2 k3 k4 k5 k6 k7");
  CHECK(run.text("out/left_out.jsonl") == "(none)");
  CHECK_FALSE(run.json("out/dataset.json").contains("left_out"));
}
