// Objects of a server that are read and written, with faults of the server and the network.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <catch2/catch.hpp>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "io/object_server.h"
#include "io/remote/remote_file.h"
#include "io/remote/s3_client.h"
#include "io/remote/upload.h"

using namespace vfm;
using namespace vfm::io;

namespace {

std::string many_bytes(std::size_t size) {
  std::string text;
  std::uint32_t state = 1;
  for (int i = 0; i < 100'003; ++i)
    text += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  while (text.size() < size)
    text += text.substr(0, size - text.size());
  text.resize(size);
  return text;
}

std::string bytes_at(const RemoteFile& file, std::uint64_t offset, std::size_t size) {
  std::string out(size, '\0');
  file.pread_exact(out.data(), size, offset);
  return out;
}

std::string read_to_end(RemoteReader& reader, std::size_t step) {
  std::string all, some(step, '\0');
  for (std::size_t count = 1; count > 0; all.append(some, 0, count))
    count = reader.read_some(some.data(), step);
  return all;
}

std::shared_ptr<S3Client> client_of(const std::string& address) {
  return S3Client::of(address_of(address));
}

}  // namespace

TEST_CASE("an object is written, found, read in ranges and whole, copied, removed") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket(), name = bucket + "/a b/c+d.bin";
  const std::string text = many_bytes(100'000);
  CHECK_FALSE(RemoteFile::open_if_there(name));
  CHECK_THROWS_WITH(RemoteFile::open(name),
                    Catch::Contains(name) && Catch::Contains("no such object"));
  write_object(name, text);
  const auto file = RemoteFile::open(name);
  CHECK(file->size() == text.size());
  CHECK(file->stored_hash() == hash_hex(text));
  CHECK_FALSE(file->version().empty());
  CHECK(file->has_ranges());
  CHECK((bytes_at(*file, 70'000, 30'000) == text.substr(70'000)));
  CHECK(bytes_at(*file, 100'000, 0).empty());
  CHECK_THROWS_AS(bytes_at(*file, 70'000, 30'001), Error);
  CHECK((read_object(name) == text));
  CHECK_THROWS_WITH(read_object(name, 99'999), Catch::Contains(name));
  const auto client = client_of(bucket);
  client->copy("a b/c+d.bin", "e");
  CHECK((read_object(bucket + "/e") == text));
  client->remove("e");
  client->remove("e");
  CHECK_FALSE(client->head("e"));
  write_object(name, "");
  CHECK(RemoteFile::open(name)->size() == 0);
  CHECK(read_object(name).empty());
}

TEST_CASE("requests are signed, and the secret is sent nowhere") {
  ObjectServer server;
  const std::string name = ObjectServer::new_bucket() + "/k";
  write_object(name, "text");
  RemoteFile::open(name);
  for (const ServedRequest& request : server.requests()) {
    CHECK(request.headers.at("authorization").starts_with("AWS4-HMAC-SHA256 Credential=key/"));
    CHECK(request.headers.at("x-amz-content-sha256").size() == 64);
    for (const auto& [header, value] : request.headers)
      CHECK(value.find("secret") == value.npos);
  }
  CHECK(server.requests()[0].headers.contains("x-amz-checksum-crc32c"));
}

TEST_CASE("lists have objects and folders page by page") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket(), path = bucket.substr(4);
  for (const char* key : {"p/a", "p/b/1", "p/b/2", "p/b/3", "p/c", "p/d/1", "p/e", "q"})
    server.put(path + "/" + key, "x");
  std::string seen;
  const auto see = [&](const ListedObject& object) { seen += object.name + ","; };
  client_of(bucket)->list("p/", false, see);
  CHECK(seen == "a,b/,c,d/,e,");
  seen.clear();
  client_of(bucket)->list("p/", true, see);
  CHECK(seen == "a,b/1,b/2,b/3,c,d/1,e,");
  seen.clear();
  client_of(bucket)->list("none/", false, see);
  CHECK(seen.empty());
}

TEST_CASE("many ranges come by few requests, and each is told when it is there") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket();
  const std::string text = many_bytes(20'000'000);
  server.put(bucket.substr(4) + "/k", text);
  const auto file = RemoteFile::open(bucket + "/k");
  std::vector<std::string> out{std::string(1000, '\0'),      std::string(500, '\0'),
                               std::string(9'000'000, '\0'), std::string(0, '\0'),
                               std::string(100, '\0'),       std::string(300, '\0')};
  const std::uint64_t offsets[] = {5000, 100, 10'000'000, 50, 5500, 100'000};
  std::vector<RemoteFile::Range> ranges;
  for (std::size_t i = 0; i < out.size(); ++i)
    ranges.push_back({offsets[i], std::as_writable_bytes(std::span(out[i]))});
  std::mutex mutex;
  std::vector<int> told(out.size());
  file->pread_all(ranges, [&](std::size_t i) {
    const std::lock_guard lock(mutex);
    ++told[i];
  });
  for (std::size_t i = 0; i < out.size(); ++i) {
    CHECK(told[i] == 1);
    CHECK((out[i] == text.substr(offsets[i], out[i].size())));
  }
  // 50 to 6000, the overlapping 5500, and two pieces of the large one. 100'000 is near enough.
  CHECK(server.count("GET") == 4);
}

TEST_CASE("a reader gives the bytes in order, and those after a jump") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket();
  const std::string text = many_bytes(9'000'001);
  server.put(bucket.substr(4) + "/k", text);
  RemoteReader reader(RemoteFile::open(bucket + "/k"), std::size_t{4} << 20);
  CHECK((read_to_end(reader, 100'000) == text));
  CHECK(reader.position() == text.size());
  const int before = server.count("GET");
  CHECK(before < 15);
  for (const std::uint64_t at : {8'999'000ull, 17ull, 5'000'000ull, 5'000'100ull, 4'999'999ull}) {
    reader.seek(at);
    std::string some(1, '\0');
    REQUIRE(reader.read_some(some.data(), 1) == 1);
    CHECK(some[0] == text[at]);
  }
  reader.seek(0);
  CHECK((read_to_end(reader, 5'000'000) == text));
  reader.seek(text.size() + 5);
  char c;
  CHECK(reader.read_some(&c, 1) == 0);
}

TEST_CASE("requests that fail for a time are sent again, and bytes that came do not come again") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket();
  const std::string text = many_bytes(300'000);
  server.put(bucket.substr(4) + "/k", text);
  server.before = [](const ServedRequest&, int number) -> std::optional<ServedAnswer> {
    if (number == 1) return served_error(503, "SlowDown");
    if (number == 2) return ServedAnswer{.status = 0};
    if (number == 3) return ServedAnswer{429, {{"Retry-After", "1"}}, "", {}};
    return std::nullopt;
  };
  server.after = [](const ServedRequest&, int number, ServedAnswer& answer) {
    if (number == 4) answer.cut = 200'000;
  };
  const auto file = RemoteFile::open(bucket + "/k");
  CHECK((bytes_at(*file, 0, text.size()) == text));
  const auto requests = server.requests();
  REQUIRE(requests.size() == 6);
  CHECK(requests[5].headers.at("range") == "bytes=200000-299999");
  CHECK(requests[5].headers.at("if-match") == "\"" + file->version() + "\"");
}

TEST_CASE("an object that changes under a read is an error with its name") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket();
  server.put(bucket.substr(4) + "/k", "before");
  const auto file = RemoteFile::open(bucket + "/k");
  server.put(bucket.substr(4) + "/k", "behind");
  CHECK_THROWS_WITH(bytes_at(*file, 0, 6),
                    Catch::Contains(bucket + "/k") && Catch::Contains("changed"));
  // A server that ignores If-Match.
  server.after = [](const ServedRequest&, int, ServedAnswer& answer) {
    answer = {206, {{"ETag", "\"other\""}, {"Content-Range", "bytes 0-5/6"}}, "behind", {}};
  };
  CHECK_THROWS_WITH(bytes_at(*file, 0, 6), Catch::Contains("changed"));
  server.after = [](const ServedRequest&, int, ServedAnswer& answer) {
    answer = {206, {{"Content-Range", "bytes 1-6/7"}}, "ehindx", {}};
  };
  CHECK_THROWS_WITH(bytes_at(*file, 0, 6), Catch::Contains("other bytes"));
}

TEST_CASE("what cannot succeed is told at once, with the server's words and no secret") {
  ObjectServer server;
  const std::string name = ObjectServer::new_bucket() + "/k";
  server.before = [](const ServedRequest& request, int) {
    ServedAnswer error = served_error(403, "AccessDenied");
    error.body = "<Error><Code>AccessDenied</Code><Message>no</Message><Sent>" +
                 request.headers.at("authorization") + "</Sent></Error>";
    return std::optional(error);
  };
  CHECK_THROWS_WITH(read_object(name), Catch::Contains("AccessDenied: no") &&
                                           Catch::Contains("credentials") &&
                                           !Catch::Contains("Signature"));
  CHECK_THROWS_WITH(write_object(name, "x"), Catch::Contains("AccessDenied: no"));
  CHECK(server.requests().size() == 2);
}

TEST_CASE("a server that stays away is given up") {
  ObjectServer server;
  const std::string name = ObjectServer::new_bucket() + "/k";
  ::setenv("VFM_NET_SECONDS", "1", 1);
  server.before = [](const ServedRequest&, int) {
    return std::optional(served_error(503, "SlowDown"));
  };
  try {
    read_object(name);
    FAIL("read");
  } catch (const Error& error) {
    CHECK(error.cause() == Cause::disk);
    CHECK_THAT(error.what(), Catch::Contains("SlowDown") && Catch::Contains("tries"));
  }
  CHECK(server.requests().size() < 10);
}

TEST_CASE("the bucket's region, the server's clock and new keys are taken over") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket();
  server.put(bucket.substr(4) + "/k", "text");
  const auto scope = [](const ServedRequest& request) {
    return request.headers.at("authorization");
  };
  server.before = [&](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    if (scope(request).find("/eu-west-9/") == std::string::npos) {
      ServedAnswer moved = served_error(301, "PermanentRedirect");
      moved.headers["x-amz-bucket-region"] = "eu-west-9";
      return moved;
    }
    if (!request.headers.at("x-amz-date").starts_with("20130524T")) {
      ServedAnswer skewed = served_error(403, "RequestTimeTooSkewed");
      skewed.headers["Date"] = "Fri, 24 May 2013 00:00:00 GMT";
      return skewed;
    }
    if (scope(request).find("=key/") != std::string::npos) {
      ::setenv("AWS_ACCESS_KEY_ID", "newer", 1);
      return served_error(400, "ExpiredToken");
    }
    return std::nullopt;
  };
  CHECK(read_object(bucket + "/k") == "text");
  CHECK(server.requests().size() == 4);
  CHECK(read_object(bucket + "/k") == "text");
  CHECK(server.requests().size() == 5);
}

TEST_CASE("a large object goes in parts and appears at the end") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket(), name = bucket + "/k",
                    path = bucket.substr(4);
  const std::string text = many_bytes(20'000'000);
  server.before = [](const ServedRequest& request, int number) -> std::optional<ServedAnswer> {
    if (request.method == "PUT" && number == 2) return served_error(500, "InternalError");
    return std::nullopt;
  };
  {
    ObjectUpload upload(name);
    for (std::size_t at = 0; at < text.size(); at += 7'000'000)
      upload.write(text.data() + at, std::min<std::size_t>(7'000'000, text.size() - at));
    CHECK(upload.bytes_written() == text.size());
    CHECK_FALSE(server.get(path + "/k"));
    CHECK(upload.differs());
    upload.commit();
  }
  CHECK((server.get(path + "/k") == text));
  CHECK(server.uploads() == 0);
  ObjectUpload second(name);
  second.write(text.data(), text.size());
  CHECK_FALSE(second.commit_over(""));
  CHECK(server.uploads() == 0);
  // From the caller's memory.
  const std::string more = many_bytes((std::size_t{65} << 20) + 1);
  ObjectUpload third(name);
  third.write(more.data(), more.size());
  third.commit();
  CHECK((server.get(path + "/k") == more));
}

TEST_CASE("parts that go slowly, or whose answers come late, are sent once") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket();
  const std::string text = many_bytes(18'000'000);
  ::setenv("VFM_NET_SECONDS", "4", 1);  // A quarter of it is the longest silence.
  const auto upload = [&](const std::string& key) {
    const int before = server.count("PUT");
    write_object(bucket + key, text);
    CHECK((server.get(bucket.substr(4) + key) == text));
    return server.count("PUT") - before;
  };
  const int quick = upload("/quick");
  server.pause = 8;
  CHECK(upload("/slow") == quick);
  server.pause = 0;
  std::atomic<int> milliseconds{1300};
  std::atomic<bool> once{false};
  server.before = [&](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    const auto part = request.query.find("partNumber");
    if (part == request.query.end() || part->second != "2") return std::nullopt;
    const int wait = once ? milliseconds.exchange(0) : milliseconds.load();
    std::this_thread::sleep_for(std::chrono::milliseconds(wait));
    return std::nullopt;
  };
  CHECK(upload("/late") == quick);
  milliseconds = 2500;  // more than half of it
  once = true;
  CHECK(upload("/silent") > quick);
}

TEST_CASE("an upload that is given up leaves nothing") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket();
  const std::string text = many_bytes(20'000'000);
  {
    ObjectUpload upload(bucket + "/a/k");
    upload.write(text.data(), text.size());
    CHECK(server.uploads() == 1);
  }
  CHECK(server.uploads() == 0);
  CHECK(server.object_paths().empty());
}

TEST_CASE("an upload knows whether its bytes are there already") {
  ObjectServer server;
  const std::string name = ObjectServer::new_bucket() + "/k";
  ObjectUpload first(name);
  first.write("text", 4);
  CHECK(first.differs());
  CHECK(first.commit_over(""));
  ObjectUpload second(name);
  second.write("text", 4);
  CHECK_FALSE(second.differs());
  second.write("s", 1);
  CHECK(second.differs());
  CHECK_FALSE(second.commit_over(""));
}

TEST_CASE("a completion whose answer is lost is known by its writer") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket();
  const std::string text = many_bytes(17'000'000);
  int completions = 0;
  server.after = [&](const ServedRequest& request, int, ServedAnswer& answer) {
    if (request.method == "POST" && request.query.contains("uploadId") && ++completions == 1)
      answer.status = 0;
  };
  ObjectUpload upload(bucket + "/k");
  upload.write(text.data(), text.size());
  CHECK_FALSE(upload.commit().empty());
  CHECK(completions == 2);
  CHECK((server.get(bucket.substr(4) + "/k") == text));
}

TEST_CASE("an object over 5 GiB is copied in parts, whose upload ends with a part that fails") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket();
  std::uint64_t bytes = std::uint64_t{5} << 30;
  std::vector<ServedRequest> copies, completions;
  std::size_t fails_at = 0;
  // A server with one large object, which it does not have.
  server.before = [&](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    if (request.method == "HEAD")
      return ServedAnswer{
          200, {{"Content-Length", std::to_string(bytes)}, {"ETag", "\"v\""}}, "", {}};
    if (request.headers.contains("x-amz-copy-source")) {
      copies.push_back(request);
      if (copies.size() == fails_at) return served_error(403, "AccessDenied");
      const std::string tag = "e" + std::to_string(copies.size());
      return ServedAnswer{200, {}, "<R><ETag>" + tag + "</ETag></R>", {}};
    }
    if (request.method == "POST" && request.query.contains("uploadId")) {
      completions.push_back(request);
      return ServedAnswer{200, {}, "<R><ETag>whole</ETag></R>", {}};
    }
    return std::nullopt;
  };
  const auto client = client_of(bucket);
  client->copy("a b", "c");
  REQUIRE(copies.size() == 1);
  CHECK(copies[0].query.empty());
  CHECK_FALSE(copies[0].headers.contains("x-amz-copy-source-range"));
  copies.clear();
  ++bytes;
  client->copy("a b", "c");
  REQUIRE(copies.size() > 1);
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    CHECK(copies[i].query.at("partNumber") == std::to_string(i + 1));
    CHECK(copies[i].headers.at("x-amz-copy-source") == "/" + bucket.substr(5) + "/a%20b");
    CHECK(copies[i].headers.at("x-amz-copy-source-if-match") == "\"v\"");
    std::uint64_t first = 0, last = 0;
    REQUIRE(std::sscanf(copies[i].headers.at("x-amz-copy-source-range").c_str(),
                        "bytes=%" SCNu64 "-%" SCNu64, &first, &last) == 2);
    CHECK(first == next);
    CHECK(last - first < std::uint64_t{5} << 30);
    next = last + 1;
  }
  CHECK(next == bytes);
  REQUIRE(completions.size() == 1);
  for (std::size_t i = 1; i <= copies.size(); ++i)
    CHECK_THAT(completions[0].body, Catch::Contains("e" + std::to_string(i) + "&quot;"));
  copies.clear();
  fails_at = 2;
  const int ends = server.count("DELETE");
  CHECK_THROWS_WITH(client->copy("a b", "c"), Catch::Contains("cannot copy"));
  CHECK(server.count("DELETE") == ends + 2);  // the upload, and its claim
  CHECK(completions.size() == 1);
}

TEST_CASE("addresses of the web are read, also from servers without ranges") {
  ObjectServer server;
  const std::string text = many_bytes(3'000'000);
  server.put("/a.bin", text);
  server.put("/empty", "");
  const auto file = RemoteFile::open(server.url("/a.bin"));
  CHECK(file->has_ranges());
  CHECK((bytes_at(*file, 1'000'000, 1000) == text.substr(1'000'000, 1000)));
  CHECK_FALSE(server.requests()[0].headers.contains("authorization"));
  CHECK(RemoteFile::open(server.url("/empty"))->size() == 0);
  CHECK_FALSE(RemoteFile::open_if_there(server.url("/none")));
  CHECK((read_object(server.url("/a.bin")) == text));
  CHECK_THROWS_AS(ObjectUpload(server.url("/a.bin")), Error);
  bool cut = false;
  server.before = [&](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    ServedAnswer whole{200, {{"ETag", "W/\"v\""}}, text, {}};
    if (!request.headers.contains("range") && !std::exchange(cut, true)) whole.cut = 1'000'000;
    return whole;
  };
  const auto streamed = RemoteFile::open(server.url("/a.bin"));
  CHECK_FALSE(streamed->has_ranges());
  CHECK(streamed->size() == text.size());
  CHECK_THROWS_WITH(bytes_at(*streamed, 0, 10), Catch::Contains("ranges"));
  RemoteReader reader(streamed, 100'000);
  CHECK((read_to_end(reader, 70'000) == text));
  CHECK(cut);
  reader.seek(2'000'000);
  CHECK((read_to_end(reader, 70'000) == text.substr(2'000'000)));
  server.before = [](const ServedRequest&, int) {
    return std::optional(ServedAnswer{302, {{"Location", "http://elsewhere/?secret"}}, "", {}});
  };
  CHECK_THROWS_WITH(RemoteFile::open(server.url("/a.bin")),
                    Catch::Contains("302") && !Catch::Contains("secret"));
}

TEST_CASE("connections are kept") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket();
  for (int i = 0; i < 20; ++i)
    write_object(bucket + "/k", "text");
  CHECK(server.connections() == 1);
}
