// How an object is sent: in which parts, how many at once, and what is sent again.
// SPDX-License-Identifier: Apache-2.0
#include "io/remote/upload.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "io/object_server.h"
#include "io/remote/remote_file.h"

using namespace vfm;
using namespace vfm::io;

namespace {

constexpr std::size_t kWholePart = std::size_t{16} << 20;

bool is_part(const ServedRequest& request) {
  return request.query.contains("partNumber");
}

/// Returns the sizes of the parts in which so many bytes were sent by one call.
std::vector<std::size_t> parts_of(ObjectServer& server, std::size_t size) {
  const std::size_t before = server.requests().size();
  const std::string text(size, 'x');
  ObjectUpload upload(ObjectServer::new_bucket() + "/k");
  upload.write(text.data(), text.size());
  upload.commit();
  CHECK((read_object(upload.address()) == text));
  std::map<int, std::size_t> parts;  // by number
  const std::vector<ServedRequest> requests = server.requests();
  for (std::size_t i = before; i < requests.size(); ++i)
    if (is_part(requests[i]))
      parts[std::stoi(requests[i].query.at("partNumber"))] = requests[i].body.size();
  std::vector<std::size_t> sizes;
  for (const auto& [number, bytes] : parts) {
    CHECK(number == static_cast<int>(sizes.size()) + 1);
    sizes.push_back(bytes);
  }
  return sizes;
}

}  // namespace

TEST_CASE("one part is put by one request, more in equal parts, of which none is empty") {
  ObjectServer server;
  const std::size_t part = kWholePart;
  CHECK(parts_of(server, part).empty());
  CHECK(server.count("POST") == 0);
  CHECK(parts_of(server, part + 1) == std::vector<std::size_t>{part, 1});
  CHECK(parts_of(server, 2 * part) == std::vector<std::size_t>{part, part});
  // From the caller's memory.
  CHECK(parts_of(server, 4 * part) == std::vector<std::size_t>{part, part, part, part});
}

TEST_CASE("parts that are under way at once are bounded by the bytes that may be held") {
  ObjectServer server;
  std::atomic<int> now{0}, most{0}, waits{400};
  server.before = [&](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    if (!is_part(request)) return std::nullopt;
    most = std::max(most.load(), ++now);
    // The first waits for a second one, if there may be one.
    for (int i = 0; i < waits && most < 2; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return std::nullopt;
  };
  server.after = [&](const ServedRequest& request, int, ServedAnswer&) {
    if (is_part(request)) --now;
  };
  const std::string text(kWholePart, 'x');
  const auto send = [&](std::size_t ahead, int parts) {
    most = 0;
    ObjectUpload upload(ObjectServer::new_bucket() + "/k", ahead);
    for (int i = 0; i < parts; ++i)
      upload.write(text.data(), text.size());
    upload.commit();
    return most.load();
  };
  CHECK(send(4 * kWholePart, 5) >= 2);
  CHECK(send(4 * kWholePart, 5) <= 3);  // and one that is being filled
  waits = 10;
  CHECK(send(2 * kWholePart, 3) == 1);
}

TEST_CASE("a completion that fails after its answer began is sent again, or is lost") {
  ObjectServer server;
  const std::string text(kWholePart + 1, 'x');
  int completions = 0;
  std::string code = "InternalError";
  server.after = [&](const ServedRequest& request, int, ServedAnswer& answer) {
    if (request.method != "POST" || !request.query.contains("uploadId")) return;
    if (++completions == 1) answer = {200, {}, served_error(200, code).body, {}};
  };
  const auto upload = [&] {
    completions = 0;
    auto made = std::make_unique<ObjectUpload>(ObjectServer::new_bucket() + "/k");
    made->write(text.data(), text.size());
    return made;
  };
  CHECK_FALSE(upload()->commit().empty());
  CHECK(completions == 2);
  code = "MalformedXML";
  CHECK_THROWS_WITH(upload()->commit(), Catch::Contains("MalformedXML"));
  CHECK(completions == 1);
  // The object of another writer was there first.
  code = "PreconditionFailed";
  server.before = [](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    if (request.method == "HEAD") return served_error(404, "NoSuchKey");
    return std::nullopt;
  };
  CHECK_FALSE(upload()->commit_over(""));
  CHECK(completions == 1);
}

TEST_CASE("a write whose answers do not come is asked for at the end") {
  ObjectServer server;
  std::string lost;  // the method
  server.after = [&](const ServedRequest& request, int, ServedAnswer& answer) {
    if (request.method == lost && !is_part(request) && !request.query.contains("uploads"))
      answer = served_error(503, "SlowDown");
  };
  const std::string text(kWholePart + 1, 'x');
  const auto commit = [&](const char* method, std::size_t size) {
    ObjectUpload upload(ObjectServer::new_bucket() + "/k");
    upload.write(text.data(), size);
    lost = method;
    const std::string version = upload.commit();
    lost.clear();
    return version == hash_hex(std::string_view(text).substr(0, size));
  };
  ::setenv("VFM_NET_SECONDS", "1", 1);
  CHECK(commit("POST", text.size()));
  CHECK(commit("PUT", 3));
  // An object of another writer does not count.
  const std::string bucket = ObjectServer::new_bucket();
  write_object(bucket + "/k", "older");
  server.before = [](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    if (request.method == "PUT") return served_error(503, "SlowDown");
    return std::nullopt;
  };
  CHECK_THROWS_WITH(write_object(bucket + "/k", "newer"), Catch::Contains("503 SlowDown"));
}

TEST_CASE("an upload in place of an object that has gone is lost") {
  ObjectServer server;
  const std::string text(kWholePart + 1, 'x');
  ObjectUpload upload(ObjectServer::new_bucket() + "/k");
  upload.write(text.data(), text.size());
  CHECK_FALSE(upload.commit_over("older"));
  CHECK(server.uploads() == 0);
}

TEST_CASE("a body that came damaged is sent again, and what the server refuses is not") {
  ObjectServer server;
  ServedAnswer first;
  server.before = [&](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    if (request.method != "PUT" || first.status == 200) return std::nullopt;
    return std::exchange(first, {});
  };
  const auto writes = [&](int status, const std::string& code) {
    const int before = server.count("PUT");
    first = served_error(status, code);
    try {
      write_object(ObjectServer::new_bucket() + "/k", "text");
    } catch (const Error&) {
      return -1;
    }
    return server.count("PUT") - before;
  };
  for (const char* code : {"BadDigest", "RequestTimeout", "XAmzContentSHA256Mismatch"})
    CHECK(writes(400, code) == 2);
  CHECK(writes(409, "OperationAborted") == 2);
  CHECK(writes(400, "InvalidRequest") == -1);
  CHECK(writes(409, "ObjectLocked") == -1);
  CHECK(writes(501, "NotImplemented") == -1);
}
