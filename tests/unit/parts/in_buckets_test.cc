// Parts in a bucket: claims, markers and looks by few requests.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/object_server.h"
#include "parts/clip_list.h"
#include "parts/part_inputs.h"
#include "parts/part_run.h"
#include "parts/parts_look.h"
#include "parts/stage_look.h"
#include "parts/status.h"

using namespace vfm::parts;
using namespace vfm;

namespace {

const auto kSame = [](int) { return std::string("digest"); };

PartChoice any_of_bucket(int parts) {
  PartChoice choice;
  choice.kind = PartChoice::Kind::automatic;
  choice.parts = parts;
  choice.lease_seconds = 0.5;
  return choice;
}

/// Makes a list of `parts` parts with one video each.
void make_list(const std::string& folder, int parts, ObjectServer& server) {
  ListOptions options;
  options.directory = folder;
  options.parts = parts;
  options.shard_bytes = 1024;
  options.is_picture = [](const std::string&) { return false; };
  for (int i = 0; i < parts; ++i) {
    options.inputs.push_back(folder + "/raw/" + std::to_string(i) + ".mp4");
    server.put(options.inputs.back().substr(4), std::string(5000, 'x'));
  }
  const ListFacts facts = write_list(
      options, [](io::Fault fault) { FAIL(fault.message); }, no_progress());
  REQUIRE(facts.parts == parts);
}

}  // namespace

TEST_CASE("the parts of a folder in a bucket are done once, and what is done stays") {
  ObjectServer server;
  const std::string folder = server.new_bucket() + "/clips";
  std::vector<int> done;
  {
    PartRun first(folder, "embed", any_of_bucket(5)), second(folder, "embed", any_of_bucket(5));
    for (PartRun* run : {&first, &second, &first, &second, &first}) {
      std::optional<Part> part = run->next(kSame);
      REQUIRE(part);
      CHECK(io::is_folder(part->temporary()));
      io::write_file(part->path("manifest.jsonl"), "{}\n");
      done.push_back(part->number());
      part->complete({});
    }
    CHECK_FALSE(first.next(kSame));
    CHECK_FALSE(second.next(kSame));
  }
  std::sort(done.begin(), done.end());
  CHECK(done == std::vector<int>{0, 1, 2, 3, 4});
  const std::optional<PartInputs> inputs = part_inputs(folder, "embed");
  REQUIRE(inputs);
  CHECK(inputs->missing.empty());
  CHECK(inputs->manifests.size() == 5);
  CHECK(inputs->manifests[2] == folder + "/parts/embed/00002/manifest.jsonl");
  CHECK(look_at_parts(folder, "embed", true).count(PartState::Kind::done) == 5);
  for (const io::FolderEntry& file : io::files_below(folder))
    CHECK(file.name.find("lease-") == std::string::npos);
}

TEST_CASE(
    "two processes that claim one part of a bucket: one gets it, and the other sees whose it is") {
  ObjectServer server;
  const std::string folder = server.new_bucket() + "/clips";
  PartChoice choice = any_of_bucket(1);
  choice.kind = PartChoice::Kind::fixed;
  choice.part = 0;
  PartRun first(folder, "embed", choice);
  std::optional<Part> mine = first.next(kSame);
  REQUIRE(mine);
  PartRun second(folder, "embed", choice);
  CHECK_THROWS_WITH(second.next(kSame), Catch::Contains("works at part 0 since"));
  const PartsStatus status = look_at_parts(folder, "embed", false);
  CHECK(status.count(PartState::Kind::working) == 1);
  CHECK(status.parts[0].pid > 0);
  mine->fail("the disk is full");
  CHECK(look_at_parts(folder, "embed", false).parts[0].why == "the disk is full");
  mine.reset();
  CHECK(PartRun(folder, "embed", choice).next(kSame));
}

TEST_CASE("a store that breaks its promises is refused before any lease") {
  ObjectServer server;
  server.before = [](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    if (request.method == "PUT" && request.headers.contains("if-none-match"))
      return ServedAnswer{200, {{"etag", "\"0\""}}, ""};
    return std::nullopt;
  };
  const std::string folder = server.new_bucket() + "/clips";
  CHECK_THROWS_WITH(PartRun(folder, "embed", any_of_bucket(1)),
                    Catch::Contains("cannot be shared by several programs"));
}

TEST_CASE("a look at the stages of many parts takes few requests") {
  ObjectServer server;
  server.page = 1000;
  constexpr int kParts = 40;
  const std::string folder = server.new_bucket() + "/clips";
  make_list(folder, kParts, server);
  PartRun clip(folder, "clip", any_of_bucket(kParts));
  std::optional<Part> working;
  for (int i = 0; i < kParts - 5; ++i) {
    std::optional<Part> part = clip.next(kSame);
    REQUIRE(part);
    if (i > 0) part->complete({});
    if (i == 0) working.emplace(*std::move(part));
  }
  // The pages of a listing count once. Those of this server have three objects.
  const auto requests = [&] {
    const std::vector<ServedRequest> all = server.requests();
    return std::ranges::count_if(all, [](const ServedRequest& each) {
      return !each.query.contains("continuation-token");
    });
  };
  ListStages look(folder, {"clip", "caption", "embed"});
  const auto before = requests();
  const std::vector<ListStage> stages = look.look(false);
  CHECK(stages[0].done == kParts - 6);
  CHECK(stages[0].working == 1);
  CHECK(stages[0].ready == 5);
  CHECK(stages[1].ready == kParts - 6);
  // For each stage run.json and a listing, the list twice, and a lease.
  CHECK(requests() - before <= 12);
  const auto then = requests();
  CHECK(part_inputs(folder, "clip")->missing.size() == 6);
  CHECK(requests() - then <= 3);
  look.look(true);
  CHECK(look.beat() == 0.5);
}

TEST_CASE("sizes of objects are asked for, unless the record tells them") {
  ObjectServer server;
  const std::string folder = server.new_bucket() + "/clips";
  make_list(folder, 3, server);
  CHECK(read_list(folder)->bytes == 15000);
  const std::string lines = io::read_file(list_path(folder, 0));
  CHECK(lines.find("\"bytes\":5000") != std::string::npos);
  ListOptions more;
  more.directory = folder;
  more.parts = 1;
  more.is_picture = [](const std::string&) { return false; };
  const std::string manifest = folder + "/more.jsonl";
  io::write_file(manifest, "{\"kind\":\"video\",\"path\":\"" + folder +
                               "/raw/none.mp4\",\"bytes\":70}\n{\"kind\":\"video\",\"path\":\"" +
                               folder + "/raw/absent.mp4\"}\n");
  more.inputs = {manifest, folder + "/raw/1.mp4"};
  const ListFacts facts = write_list(
      more, [](io::Fault fault) { FAIL(fault.message); }, no_progress());
  CHECK(facts.known == 1);
  CHECK(facts.made.at(0).videos == 2);
  CHECK(read_list(folder)->bytes == 15070);
}
