// A dataset that is read from a bucket and written to one.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "dataset/dataset_run.h"
#include "io/atomic_file.h"
#include "io/folder.h"
#include "io/object_server.h"
#include "shard/receipt.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

/// A run on a disk, and the same in a bucket.
struct TwoRuns {
  TwoRuns() {
    for (const char* shard : {"a", "b", "c"}) {
      std::vector<shard::Sample> samples;
      for (int i = 0; i < 20; ++i) {
        const std::string key = shard + std::to_string(i);
        samples.push_back(video(key,
                                R"({"width":64,"height":36,"seconds":2,"source":")" + key +
                                    R"(.mp4","source_hash":")" + key + R"("})",
                                std::string(3000, key[0])));
      }
      near.add(shard, samples);
      far.add(shard, samples);
    }
    ::setenv("VFM_STATE", (near.folder / "state").c_str(), 1);
    far.options.output = bucket + "/out";
    for (std::string& input : far.options.inputs) {
      const std::string object = bucket + "/in/" + io::base_name(input);
      io::write_file(object, io::read_file(input));
      input = object;
    }
    near.options.shard_bytes = far.options.shard_bytes = 100'000;
  }
  ~TwoRuns() { ::unsetenv("VFM_STATE"); }

  /// Names and contents of the files of a dataset, with the same name for its inputs.
  static std::map<std::string, std::string> files_of(const DatasetRun& run) {
    std::map<std::string, std::string> files;
    const std::string inputs = io::dir_name(run.options.inputs[0]) + "/";
    for (const io::FolderEntry& file : io::files_below(run.options.output))
      files[file.name] =
          replaced(io::read_file(io::join_path(run.options.output, file.name)), inputs, "");
    return files;
  }

  ObjectServer server;
  std::string bucket = ObjectServer::new_bucket();
  DatasetRun near, far;
};

}  // namespace

TEST_CASE("a dataset in a bucket has the files and the bytes of one on a disk") {
  TwoRuns two;
  CHECK(two.near.run() == 0);
  CHECK(two.far.run() == 0);
  const auto near = TwoRuns::files_of(two.near), far = TwoRuns::files_of(two.far);
  for (const auto& [name, bytes] : near) {
    CAPTURE(name);
    REQUIRE(far.contains(name));
    CHECK((far.at(name) == bytes));
  }
  CHECK(far.size() == near.size());
}

TEST_CASE("a dataset in a bucket goes on after a kill, and is written anew where it differs") {
  TwoRuns two;
  two.far.run();
  const auto whole = TwoRuns::files_of(two.far);
  int shards_written = 0;
  two.server.before = [&](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    shards_written += request.method == "PUT" && request.path.ends_with(".tar");
    return std::nullopt;
  };
  two.far.run();
  CHECK(shards_written == 0);
  std::string tar;
  for (const auto& [name, bytes] : whole)
    if (name.ends_with(".tar")) tar = name;
  REQUIRE_FALSE(tar.empty());
  // The kill came after the shard and before its receipt, and before the dataset's own files.
  io::remove_file(shard::receipt_path(io::join_path(two.far.options.output, tar)));
  io::remove_file(io::join_path(two.far.options.output, "dataset.json"));
  two.far.run();
  CHECK(shards_written == 1);
  CHECK((TwoRuns::files_of(two.far) == whole));
  // With less input, shards are removed and written again as on a disk.
  two.near.run();
  for (DatasetRun* run : {&two.near, &two.far}) {
    run->options.inputs.pop_back();
    run->run();
  }
  CHECK((TwoRuns::files_of(two.far) == TwoRuns::files_of(two.near)));
}
