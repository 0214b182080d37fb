// What killed programs leave in a bucket, and what living ones write there.
// SPDX-License-Identifier: Apache-2.0
#include "io/remote/left_writes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "io/object_server.h"
#include "io/process_name.h"
#include "io/remote/bucket_store.h"
#include "io/remote/upload.h"

using namespace vfm;
using namespace vfm::io;

namespace {

using Paths = std::vector<std::string>;

/// A folder of a bucket of a server, and processes that wrote there.
struct LeftFolder {
  LeftFolder() : client(*S3Client::of(address_of(bucket))) {}
  ~LeftFolder() {
    g_claim_times.beat = 20;
    g_claim_times.patience = 60;
  }

  static ProcessName ended_process() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    ProcessName name = ProcessName::self();
    name.pid = child;
    return name;
  }
  static ProcessName other_host() { return {"other", 7, "0123456789abcdef"}; }

  /// Returns the path of the object.
  std::string claim(const ProcessName& process, const std::string& key, const std::string& id = "",
                    const char* kind = "upload") {
    const Json sign = {{"host", process.host}, {"pid", process.pid}, {"machine", process.machine},
                       {"patience", 100},      {"key", key},         {"id", id}};
    std::string object =
        path + "/a/.vfm-" + kind + "-" + process.name() + "-1-" + std::to_string(++claims);
    server.put(object, dump_json(sign));
    return object;
  }
  std::string begin(const std::string& key) { return client.begin_upload(key, "w"); }
  int end_left() { return end_left_uploads_below(bucket + "/a"); }

  ObjectServer server;
  std::string bucket = ObjectServer::new_bucket(), path = bucket.substr(4);
  S3Client& client;
  int claims = 0;
};

template <class Is>
bool becomes(const Is& is) {
  for (int i = 0; i < 300 && !is(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return is();
}

}  // namespace

TEST_CASE("uploads of processes that are gone are ended, and not those that may live") {
  LeftFolder left;
  const ProcessName ended = LeftFolder::ended_process(), other = LeftFolder::other_host();
  left.begin("a/foreign");
  left.begin("ab/outside");
  left.begin("a/b/killed");
  left.claim(ended, "a/b/killed");
  left.claim(ended, "a/none");
  left.claim(ended, "", "", "probe");
  left.begin("a/other");
  const std::string living = left.claim(other, "a/other");
  left.begin("a/both");
  left.claim(ended, "a/both");
  const std::string both = left.claim(other, "a/both");
  const std::string first = left.begin("a/ids"), second = left.begin("a/ids");
  left.claim(ended, "a/ids", first);
  const std::string ids = left.claim(other, "a/ids", second);
  left.server.put(left.path + "/a/.vfm-hashes", "");
  CHECK(left.end_left() == 2);
  CHECK(left.server.upload_paths() == Paths{left.path + "/a/both", left.path + "/a/foreign",
                                            left.path + "/a/ids", left.path + "/a/other",
                                            left.path + "/ab/outside"});
  CHECK(left.server.object_paths() == Paths{left.path + "/a/.vfm-hashes", living, both, ids});
  // By the store's clock: all but the first two are of other hosts, and did not change.
  left.server.seconds = 181;
  CHECK(left.end_left() == 3);
  CHECK(left.server.upload_paths() == Paths{left.path + "/a/foreign", left.path + "/ab/outside"});
  CHECK(left.server.object_paths() == Paths{left.path + "/a/.vfm-hashes"});
  left.server.seconds = 24 * 3600 + 1;
  CHECK(left.end_left() == 1);
  CHECK(left.server.upload_paths() == Paths{left.path + "/ab/outside"});
}

TEST_CASE(
    "many that live cost two requests, and a process of this number that went before is gone") {
  LeftFolder left;
  for (int i = 0; i < 3; ++i)
    left.claim(LeftFolder::other_host(), "a/k" + std::to_string(i));
  CHECK(left.end_left() == 0);
  CHECK(left.server.requests().size() == 2);
  const std::string mine = left.claim(ProcessName::self(), "a/k");
  left.begin("a/k");
  CHECK(left.end_left() == 1);
  CHECK_FALSE(left.server.get(mine));
}

TEST_CASE("an upload is claimed as long as it lasts, and renewed") {
  LeftFolder left;
  g_claim_times.beat = 0.05;
  left.server.seconds_at_write = -3 * 24 * 3600;  // renewed long ago, as it seems
  std::atomic<bool> stays{false};
  left.server.before = [&](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    if (stays && request.method == "DELETE") return served_error(503, "SlowDown");
    return std::nullopt;
  };
  left.end_left();
  const std::string text(std::size_t{17} << 20, 'x');
  const auto claims = [&] {
    Paths found;
    for (const std::string& object : left.server.object_paths())
      if (object.find("/.vfm-upload-") != object.npos) found.push_back(object);
    return found;
  };
  {
    ObjectUpload upload(left.bucket + "/a/b/k");
    upload.write(text.data(), text.size());
    REQUIRE(claims().size() == 1);
    const std::string claim = claims()[0];
    CHECK(claim.starts_with(left.path + "/a/.vfm-upload-" + ProcessName::self().name() + "-"));
    const auto says = [&] { return parse_json(*left.server.get(claim), "claim"); };
    CHECK(says().at("key") == "a/b/k");
    CHECK(becomes([&] { return says().contains("id"); }));
    CHECK(left.end_left() == 0);
    CHECK(upload.commit() != "");
    CHECK(claims().empty());
  }
  {
    ObjectUpload upload(left.bucket + "/elsewhere/k");
    upload.write(text.data(), text.size());
    CHECK(claims().at(0).starts_with(left.path + "/elsewhere/.vfm-upload-"));
  }
  CHECK(claims().empty());
  // Who cannot end its upload leaves the claim for the next program.
  ::setenv("VFM_NET_SECONDS", "1", 1);
  {
    ObjectUpload upload(left.bucket + "/a/k");
    upload.write(text.data(), text.size());
    stays = true;
  }
  CHECK(claims().size() == 1);
  stays = false;
  CHECK(left.end_left() == 1);
  CHECK(claims().empty());
}

TEST_CASE("an upload whose age the store does not tell is not taken for an old one") {
  LeftFolder left;
  left.begin("a/foreign");
  left.server.seconds = 24 * 3600 + 1;
  left.server.tells_upload_times = false;
  CHECK(left.end_left() == 0);
  left.server.tells_upload_times = true;
  CHECK(left.end_left() == 1);
}

TEST_CASE("what may live at first is looked at again") {
  LeftFolder left;
  ::setenv("VFM_NET_SECONDS", "1", 1);
  g_claim_times.beat = 0.05;
  g_claim_times.patience = 0;
  left.claim(LeftFolder::other_host(), "a/k");
  left.begin("a/k");
  CHECK(left.end_left() == 0);
  left.server.seconds = 200;
  CHECK(becomes([&] { return left.server.uploads() == 0; }));
  CHECK(becomes([&] { return left.server.object_paths().empty(); }));
}

TEST_CASE("what was left of a trial of the store is removed by the next") {
  LeftFolder left;
  const std::string living = left.claim(LeftFolder::other_host(), "", "", "probe");
  left.claim(LeftFolder::ended_process(), "", "", "probe");
  BucketStore store(left.bucket + "/a");
  store.check_conditions();
  CHECK(left.server.object_paths() == Paths{living});
}
