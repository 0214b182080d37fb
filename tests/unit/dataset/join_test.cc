// One sample of several columns: whose word counts, what comes first, and new keys.
// SPDX-License-Identifier: Apache-2.0
#include "dataset/join.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

using namespace vfm;
using namespace vfm::dataset;
using Catch::Contains;

namespace {

JoinedSample join(const std::vector<shard::SampleView>& parts) {
  std::vector<const shard::SampleView*> columns;
  for (const shard::SampleView& part : parts)
    columns.push_back(&part);
  return join_sample(columns);
}

std::string extensions(const JoinedSample& sample) {
  std::string all;
  for (const shard::MemberView& member : sample.members)
    all += std::string(member.extension) + " ";
  return all;
}

}  // namespace

TEST_CASE("a sample is about its video, else its picture, else what is no text") {
  const auto media = [](const std::vector<shard::MemberView>& members) {
    return join({{"k", members}}).media;
  };
  CHECK(media({{"jpg", "p"}, {"mp4", "v"}, {"txt", "t"}}) == "mp4");
  CHECK(media({{"left.mp4", "l"}, {"mkv", "v"}}) == "mkv");
  CHECK(media({{"left.mp4", "l"}, {"jpg", "p"}}) == "left.mp4");
  CHECK(media({{"txt", "t"}, {"depth.png", "d"}}) == "depth.png");
  CHECK(media({{"txt", "t"}, {"text.npy", "e"}, {"wav", "w"}}) == "wav");
  CHECK(media({{"txt", "t"}}).empty());
  CHECK(media_kind("mp4.gz") == MediaKind::other);
}

TEST_CASE("later columns replace what the first one says, and must agree with each other") {
  const shard::SampleView clip{"k",
                               {{"json", R"({"caption":"a","fps":24,"split":"val","bin":"b"})"},
                                {"zip", "z"},
                                {"video.npy", "n"},
                                {"txt", "a"},
                                {"mp4", "video"}}};
  const shard::SampleView caption{"k", {{"json", R"({"caption":"b"})"}, {"txt", "b"}}};
  const JoinedSample joined = join({clip, caption, caption});
  CHECK(extensions(joined) == "mp4 txt video.npy zip ");
  CHECK(joined.find("txt") == "b");
  CHECK(joined.find("jpg").empty());
  CHECK(joined.meta == Json{{"caption", "b"},
                            {"fps", 24},
                            {"key", "k"},
                            {"media", "video"},
                            {"bytes", 5},
                            {"media_xxh3", hash_hex("video")}});
  CHECK_THROWS_WITH(join({clip, caption, {"k", {{"txt", "c"}}}}),
                    Contains("different members 'txt'"));
  CHECK_THROWS_WITH(join({clip, caption, {"k", {{"json", R"({"caption":"c"})"}}}}),
                    Contains("different values of 'caption': \"b\" and \"c\""));
  CHECK_THROWS_WITH(join({{"k", {{"json", "[]"}, {"mp4", "v"}}}}), Contains("not a JSON object"));
  CHECK_THROWS_WITH(join({{"k", {{"json", "{}"}}}}), Contains("no members but its JSON"));
}

TEST_CASE("what a sample says of its media stands; a foreign key becomes a hash") {
  const JoinedSample joined =
      join({{"train/0001", {{"json", R"({"media":"other","bytes":7})"}, {"mp4", "video"}}}});
  CHECK(joined.meta["media"] == "other");
  CHECK(joined.meta["bytes"] == 7);
  CHECK(joined.key != "train/0001");
  CHECK(joined.meta["key"] == joined.key);
  CHECK(joined.meta["original_key"] == "train/0001");

  JoinedSample again = joined, plain = join({{"k", {{"mp4", "video"}}}});
  rekey(again);
  CHECK(again.key == hash_hex(hash_hex("video") + joined.key));
  CHECK(again.meta["key"] == again.key);
  CHECK(again.meta["original_key"] == "train/0001");
  CHECK_FALSE(plain.meta->contains("original_key"));
  rekey(plain);
  CHECK(plain.meta["original_key"] == "k");
}
