// What the processes of a work agree on: numbers of parts, settings, and programs that come before.
// SPDX-License-Identifier: Apache-2.0
#include "parts/run_file.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "support/list_of_parts.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::parts;

namespace {

/// A folder of clips whose list has some parts.
struct FolderOfClips {
  TemporaryFolder folder;
  explicit FolderOfClips(int parts) { list(parts); }
  void list(int parts) const { folder.write("parts/list.json", list_of_parts(parts)); }
  RunFile agree(const std::string& tool, std::optional<int> parts, RunTerms terms) const {
    PartChoice choice;
    choice.kind = PartChoice::Kind::automatic;
    choice.parts = parts;
    if (tool != "clip") terms.clips = folder.path;
    return agree_on_run(folder.path, tool, choice, terms);
  }
  std::string refusal(const std::string& tool, std::optional<int> parts, const RunTerms& terms,
                      ErrorKind kind = ErrorKind::conflict) const {
    try {
      agree(tool, parts, terms);
    } catch (const Error& error) {
      CHECK(error.kind() == kind);
      return error.what();
    }
    return "not refused";
  }
  Json file(const std::string& tool) const {
    return parse_json(io::read_file(folder / ("parts/" + tool + "/run.json")), "");
  }
};

RunTerms with_settings(const Json& settings, const std::vector<std::string>& reads = {}) {
  RunTerms terms;
  terms.settings = settings;
  terms.reads = reads;
  terms.options = {{"recipe", "--recipe"}, {"recipe.encoder", "--encoder"}, {"size", "--size"}};
  return terms;
}

}  // namespace

TEST_CASE("the parts of a work are those of the list, and grow with it, or another number") {
  const FolderOfClips of(3);
  CHECK(of.agree("clip", {}, {}).parts == 3);
  CHECK_FALSE(of.file("clip").contains("parts"));
  CHECK(of.agree("caption", {}, {}).grows);
  CHECK(of.agree("caption", 3, {}).parts == 3);
  const RunFile other = of.agree("embed", 2, {});
  CHECK_FALSE(other.grows);
  CHECK(other.of_clips);
  of.list(5);
  CHECK(count_parts(of.folder.path, "caption") == 5);
  CHECK_THAT(of.refusal("caption", 3, {}), Catch::Contains("has 5 parts, not 3"));
  CHECK(of.agree("caption", {}, {}).parts == 5);
  CHECK(of.file("caption").at("parts") == 5);
  CHECK(of.agree("embed", {}, {}).parts == 2);
  CHECK_THAT(of.refusal("embed", 5, {}), Catch::Contains("has 2 parts, not 5"));
  // Shards by their names are another work.
  PartChoice choice;
  choice.kind = PartChoice::Kind::automatic;
  CHECK_THROWS_WITH(agree_on_run(of.folder.path, "embed", choice, {}),
                    Catch::Contains("give the same input, or remove '" + of.folder.path +
                                    "/parts/embed' to begin again"));

  CHECK(clip_parts_of(1, 2, 5) == std::vector<int>{1, 3});
  CHECK(clip_parts_of(4, 5, 5) == std::vector<int>{4});
  CHECK(clip_parts_of(6, 7, 5).empty());
  CHECK(parts_with(other, {1, 3}) == std::set<int>{1});
  CHECK(parts_with(other, {1, 4}) == std::set<int>{0, 1});
  CHECK(parts_with({.parts = 3}, {1}) == std::set<int>{0, 1, 2});
}

TEST_CASE("other settings are refused, with what differs and the options to give") {
  const FolderOfClips of(1);
  const Json settings = {{"recipe", {{"encoder", "x"}, {"crop", true}}}, {"size", 32}, {"v", 1}};
  of.agree("clip", {}, with_settings(settings));
  CHECK(of.file("clip").at("settings") == settings);
  of.agree("clip", {}, with_settings(settings));
  Json now = settings;
  now["recipe"]["encoder"] = "y";
  CHECK_THAT(
      of.refusal("clip", {}, with_settings(now)),
      Catch::Contains("recipe.encoder is \"x\" there, and \"y\" here; give --encoder here as "
                      "there, or remove '" +
                      of.folder.path + "/parts/clip' to begin again"));
  now = settings;
  now["recipe"].erase("crop");
  now["size"] = 64;
  CHECK_THAT(of.refusal("clip", {}, with_settings(now)),
             Catch::Contains("recipe.crop is true there, and null here; size is 32 there, and 64 "
                             "here; give --recipe and --size here as there"));
  now = settings;
  now["v"] = 2;
  CHECK_THAT(of.refusal("clip", {}, with_settings(now)), Catch::Contains("give the same options"));
}

TEST_CASE("a work reads the columns of programs that began before it") {
  const FolderOfClips of(4);
  of.agree("caption", 2, {});
  CHECK(of.agree("embed", {}, with_settings({{"a", 1}}, {"caption"})).after ==
        std::vector<std::string>{"caption"});
  const FolderOfClips late(4);
  CHECK(late.agree("embed", {}, with_settings({{"a", 1}}, {"caption"})).after.empty());
  late.agree("caption", {}, {});
  CHECK_THAT(late.refusal("embed", {}, with_settings({{"a", 1}}, {"caption"})),
             Catch::Contains("were begun before those of vfm-caption"));
  const FolderOfClips awaits(4);
  RunTerms terms = with_settings({{"a", 1}}, {"caption"});
  terms.awaits = {"caption"};
  CHECK(awaits.agree("embed", {}, terms).after == std::vector<std::string>{"caption"});
}

TEST_CASE("of many settings that differ, three are named, in short") {
  const FolderOfClips of(1);
  const Json settings = {{"a", 1}, {"b", 2}, {"c", 3}, {"size", 4}};
  of.agree("clip", {}, with_settings(settings));
  const Json now = {{"a", std::string(90, 'x')}, {"b", 0}, {"c", 0}, {"size", 0}};
  const std::string said = of.refusal("clip", {}, with_settings(now));
  CHECK_THAT(said, Catch::Contains("a is 1 there, and \"" + std::string(79, 'x') +
                                   "... here; b is 2 there, and 0 here; c is 3 there, and 0 here; "
                                   "give --size here as there"));
  const Json turned = {{"b", 2}, {"a", 1}, {"c", 3}, {"size", 4}};
  CHECK_THAT(of.refusal("clip", {}, with_settings(turned)),
             Catch::Contains("their members have another order; give the same options"));
  // Without settings, there is nothing to agree on.
  CHECK(of.agree("clip", {}, {}).parts == 1);
}

TEST_CASE("a part that a work does not have is refused, and so is a damaged run.json") {
  const FolderOfClips of(3);
  PartChoice choice;
  choice.kind = PartChoice::Kind::fixed;
  RunTerms terms;
  terms.clips = of.folder.path;
  const auto agree = [&](int part) {
    choice.part = part;
    return agree_on_run(of.folder.path, "caption", choice, terms);
  };
  CHECK(agree(2).parts == 3);
  CHECK_THROWS_WITH(agree(3), Catch::Contains("there is no part 3") && Catch::Contains("0 to 2"));
  for (const int parts : {0, -1, 10'000'001}) {
    of.folder.write("parts/caption/run.json", fmt::format(R"({{"parts":{}}})", parts));
    CHECK_THROWS_WITH(read_run_file(of.folder.path, "caption"),
                      Catch::Contains(fmt::format("has {} parts", parts)));
  }
  of.folder.write("parts/caption/run.json", R"({"parts":10000000})");
  CHECK(read_run_file(of.folder.path, "caption")->parts == 10'000'000);
  // A work that names all shards grows with no list.
  of.folder.write("parts/caption/run.json", R"({"parts":2,"shares":"names","grows":true})");
  CHECK(count_parts(of.folder.path, "caption") == 2);
  // A list is never shorter than what was agreed on.
  of.folder.write("parts/caption/run.json", R"({"parts":5,"shares":"clips","grows":true})");
  CHECK(count_parts(of.folder.path, "caption") == 5);
  const TemporaryFolder none;
  CHECK_FALSE(count_parts(none.path, "clip"));
  CHECK_FALSE(count_parts(none.path, "caption"));
}
