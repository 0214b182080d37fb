// How much work there is, before it is done.
// SPDX-License-Identifier: Apache-2.0
#include "shard/input_totals.h"

#include <catch2/catch.hpp>

#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::shard;

TEST_CASE("totals are known where the input is files and arguments") {
  const TemporaryFolder folder;
  const std::string at = folder.path + "/";
  folder.write("videos.jsonl",
               "a.mp4\n\n{\"kind\":\"video\",\"path\":\"b.mp4\"}\n{\"not json\n"
               "{\"kind\":\"checkpoint\",\"path\":\"c\",\"step\":1}\n");
  CHECK(count_videos({at + "videos.jsonl", "d.mp4", "e.mkv"}) == 4);
  CHECK(count_videos({"d.mp4", "-"}) == 0);
  CHECK(count_videos({at + "missing.jsonl"}) == 0);

  folder.write("x.tar", "");
  folder.write("x.tar.idx", std::string(8 * 6, '\0'));
  folder.write("x.caption.tar", "");
  folder.write("shards.jsonl", "{\"kind\":\"shard\",\"path\":\"s.tar\",\"samples\":7}\n");
  CHECK(count_samples({at + "shards.jsonl"}) == 7);
  CHECK(count_samples({at + "shards.jsonl", at + "x.tar", at + "x.caption.tar"}) == 12);
  CHECK(count_samples({at + "shards.jsonl", at + "unknown.tar"}) == 0);
  CHECK(count_shards({at + "shards.jsonl", at + "x.tar", at + "x.caption.tar"}) == 2);
}
