// Sources in a bucket: their names are those of their contents, as on a disk.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "clip/source.h"
#include "clip/store/listed.h"
#include "io/file.h"
#include "io/hash_ledger.h"
#include "io/object_server.h"
#include "support/temporary_folder.h"

using namespace vfm::clip;
using namespace vfm;

namespace {

std::vector<std::string> hashes_of(const std::vector<std::string>& inputs,
                                   const std::string& scratch, io::HashLedger* ledger) {
  ClipItems items(inputs, 1 << 20, scratch);
  items.use(ledger);
  std::vector<std::string> hashes;
  while (const std::optional<ClipItem> item = items.next())
    hashes.push_back(item->sources.empty() ? item->message : item->sources[0].hash);
  return hashes;
}

}  // namespace

TEST_CASE("an object is known by its contents, and read once for that") {
  const TemporaryFolder scratch;
  ObjectServer server;
  const std::string bucket = server.new_bucket(), path = bucket.substr(4);
  server.put(path + "/a.mp4", "first");
  server.put(path + "/b.mp4", std::string(100000, 'b'));
  const std::vector<std::string> inputs{bucket + "/a.mp4", bucket + "/b.mp4"};
  const std::vector<std::string> known{hash_hex("first"), hash_hex(std::string(100000, 'b'))};
  const std::string where = scratch / "ledger";
  {
    // A ledger is made for much data alone.
    io::HashLedger ledger(where);
    CHECK(hashes_of(inputs, scratch.path, &ledger) == known);
    CHECK(ledger.files_read() == 2);
    CHECK(hashes_of(inputs, scratch.path, nullptr) == known);
  }
  const int gets = server.count("GET");
  std::vector<std::string> many(io::HashLedger::kLeastFiles, "");
  {
    io::HashLedger ledger(where);
    for (std::size_t i = 0; i < many.size(); ++i) {
      many[i] = bucket + "/" + std::to_string(i) + ".mp4";
      server.put(many[i].substr(4), std::to_string(i));
    }
    hashes_of(many, scratch.path, &ledger);
  }
  CHECK(server.count("GET") == gets + static_cast<int>(many.size()));
  server.put(many[7].substr(4), "changed");
  io::HashLedger ledger(where);
  std::vector<std::string> again = hashes_of(many, scratch.path, &ledger);
  CHECK(ledger.files_read() == 1);
  CHECK(ledger.files_known() == many.size() - 1);
  CHECK(again[7] == hash_hex("changed"));
  CHECK(again[8] == hash_hex("8"));
  CHECK(server.count("GET") == gets + static_cast<int>(many.size()) + 1);
}

TEST_CASE("small objects share shards, and folders of a bucket are no videos") {
  const TemporaryFolder scratch;
  ObjectServer server;
  const std::string bucket = server.new_bucket();
  server.put((bucket + "/raw/a.mp4").substr(4), "one");
  server.put((bucket + "/raw/b.mp4").substr(4), "two");
  ClipItems items({bucket + "/raw/a.mp4", bucket + "/raw/b.mp4"}, 1 << 20, scratch.path);
  items.join(0);
  const std::optional<ClipItem> batch = items.next();
  REQUIRE(batch);
  CHECK(batch->kind == ClipItem::Kind::joined);
  CHECK(batch->sources.size() == 2);
  CHECK(batch->sources[0].bytes == 3);
  for (const char* folder : {"/raw", "/raw/"}) {
    ClipItems wrong({bucket + folder}, 1 << 20, scratch.path);
    CHECK(wrong.next()->message ==
          "'" + bucket + folder + "' is a folder, not a video; list the videos in it for vfm-clip");
  }
}

TEST_CASE("a missing object is a result if its folder is there, and a refusal is of the machine") {
  ObjectServer server;
  const std::string bucket = server.new_bucket();
  server.put((bucket + "/raw/a.mp4").substr(4), "one");
  const auto judge = [](const std::string& path) {
    return is_of_machine(settled({path, "", Cause::open}));
  };
  CHECK_FALSE(judge(bucket + "/raw/b.mp4"));
  CHECK(judge(bucket + "/later/b.mp4"));
  server.before = [](const ServedRequest&, int) { return served_error(403, "AccessDenied"); };
  CHECK(judge(bucket + "/raw/b.mp4"));
  CHECK_FALSE(judge("http://host/b.mp4"));
}
