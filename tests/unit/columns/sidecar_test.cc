// Which files beside a video are read, and how often.
// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/sidecar.h"

#include <catch2/catch.hpp>

#include "base/hash.h"
#include "base/json.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::columns;

TEST_CASE("a caption file has the video's name, without its last extension") {
  CHECK(sidecar_path("dir/a.b.mp4", "srt") == "dir/a.b.srt");
  CHECK(sidecar_path("dir.d/a", "txt") == "dir.d/a.txt");
  CHECK(sidecar_path("a", "txt") == "a.txt");
  CHECK(sidecar_path("dir/.mp4", "txt") == "dir/.mp4.txt");
}

TEST_CASE("captions beside videos that a record names, or below folders that the user names") {
  const TemporaryFolder folder;
  folder.write("named.txt", " a fox \n");
  folder.write("listed.json",
               R"([{"start":0,"end":2,"caption":"b"},{"start":2,"end":4,"caption":"c"}])");
  folder.write("allowed/deep/one.txt", "d");
  folder.write("allowed-not/two.txt", "secret");
  folder.write("three.txt", "secret");
  const auto at = [&](const std::string& name) { return folder.path + "/" + name; };
  io::Record record;
  record.json =
      Json{{"path", "a.tar"}, {"source", at("named.mp4")}, {"sources", {at("listed.mp4"), 7}}};
  ColumnNotes notes;
  Sidecars sidecars(notes, record, {at("allowed")});
  CHECK(sidecars.caption(at("named.mp4"), "txt", 5, 9) == "a fox");
  CHECK(sidecars.caption(at("listed.mp4"), "json", 2, 4) == "c");
  CHECK(sidecars.caption(at("listed.mp4"), "json", 0, 2) == "b");
  CHECK_FALSE(sidecars.caption(at("listed.mp4"), "json", 4, 6));
  CHECK(sidecars.caption(at("allowed/deep/one.mp4"), "txt", 0, 1) == "d");
  for (const char* foreign : {"allowed-not/two.mp4", "three.mp4", "allowed/../three.mp4"})
    CHECK_FALSE(sidecars.caption(at(foreign), "txt", 0, 1));
  CHECK_FALSE(sidecars.caption(at("named.txt"), "txt", 0, 1));  // no caption of itself
  CHECK_FALSE(sidecars.caption("https://a.b/c.mp4", "txt", 0, 1));
  CHECK_FALSE(sidecars.caption("", "txt", 0, 1));
  CHECK_FALSE(sidecars.caption(at("named.mp4"), "srt", 0, 1));
  CHECK(notes.errors.empty());
  // What was read, by its contents, and what was looked for in vain.
  CHECK(notes.inputs == Json{{at("named.txt"), hash_hex(" a fox \n")},
                             {at("listed.json"), notes.inputs[at("listed.json")]},
                             {at("allowed/deep/one.txt"), hash_hex("d")},
                             {at("named.srt"), nullptr}});
  // From the shard's folder, whatever that is called from here.
  record.json["path"] = at("clips/a.tar");
  CHECK(sidecar_places(record, {at("allowed")}) == Json{{"folders", {"../allowed"}},
                                                        {"source", "../named.mp4"},
                                                        {"sources", {"../listed.mp4", 7}}});
}

TEST_CASE("a renamed video is the one that the record knows by its contents") {
  const TemporaryFolder folder;
  ColumnNotes notes;
  io::Record record;
  record.json =
      Json{{"path", "a.tar"}, {"sources", {"new/a.mp4", "a.mp4"}}, {"source_hashes", {"0a", "0b"}}};
  const Json facts = {{"source", "a.mp4"}, {"source_hash", "0a"}};
  CHECK(Sidecars(notes, record, {}).video_of(facts) == "new/a.mp4");
  CHECK(Sidecars(notes, record, {}).video_of({{"source", "c"}, {"source_hash", "0b"}}) == "a.mp4");
  CHECK(Sidecars(notes, record, {}).video_of({{"source", "c"}, {"source_hash", "0c"}}) == "c");
  CHECK(Sidecars(notes, record, {}).video_of({{"source_hash", "0c"}}) == "");
  CHECK(sidecar_places(record, {})["source_hashes"] == Json{"0a", "0b"});
  // Lists that do not belong together say nothing.
  record.json["source_hashes"] = Json::array({"0a"});
  CHECK(Sidecars(notes, record, {}).video_of(facts) == "a.mp4");
  record.json = Json{{"path", "a.tar"}, {"source", "new.mp4"}, {"source_hash", "0a"}};
  CHECK(Sidecars(notes, record, {}).video_of(facts) == "new.mp4");
}

TEST_CASE("a caption file that is damaged is told once, and counts as absent") {
  const TemporaryFolder folder;
  folder.write("a.json", "{");
  folder.write("a.srt", "1\n00:00:00,000 --> 00:00:02,000\nhello\n\n2\n9 --> later\nx\n");
  folder.write("b.srt", "no cue here");
  folder.write("c.srt", "1\n00:00:00,000 --> 00:00:02,000\nfine\n");
  const std::string a = folder.path + "/a.mp4", b = folder.path + "/b.mp4",
                    c = folder.path + "/c.mp4";
  io::Record record;
  record.json = Json{{"path", "a.tar"}, {"sources", {a, b, c}}};
  ColumnNotes notes;
  Sidecars sidecars(notes, record, {});
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(sidecars.caption(a, "json", 0, 1));
    CHECK(sidecars.caption(a, "srt", 0, 1).has_value());
    CHECK_FALSE(sidecars.caption(b, "srt", 0, 1));
    CHECK(sidecars.caption(c, "srt", 0, 1) == "fine");
  }
  REQUIRE(notes.errors.size() == 3);
  CHECK(notes.errors[0].input == folder.path + "/a.json");
  CHECK(notes.errors[1].message == "the times of 1 of 2 cues cannot be read");
  CHECK(notes.errors[2].message == "has no cue: it is not SubRip");
}

TEST_CASE("a file beside a video that is too large for captions is told, and counts as absent") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.txt", video = folder / "a.mp4";
  folder.write("a.txt", "words");
  std::filesystem::resize_file(path, (std::uintmax_t{64} << 20) + 1);
  io::Record record;
  record.json = Json{{"path", "a.tar"}, {"source", video}};
  ColumnNotes notes;
  CHECK_FALSE(Sidecars(notes, record, {}).caption(video, "txt", 0, 1));
  REQUIRE(notes.errors.size() == 1);
  CHECK(notes.errors[0].input == path);
  CHECK(notes.errors[0].cause == Cause::limit);
  CHECK(notes.errors[0].message ==
        "'" + path + "' has 64.0 MiB, and captions beside a video are read up to 64.0 MiB");
  CHECK(notes.inputs[path].get<std::string>().size() == 32);
}
