// Where requests go, by whose keys, and which answers end a request.
// SPDX-License-Identifier: Apache-2.0
#include "io/remote/requests.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/run_end.h"
#include "base/stop.h"
#include "io/object_server.h"

using namespace vfm;
using namespace vfm::io;

namespace {

S3Place place_of(const std::string& endpoint) {
  S3Place place;
  place.endpoint = endpoint;
  place.credentials = std::make_shared<CredentialSource>([] {
    return Credentials{"key", "secret", "token", 0};
  });
  return place;
}

ObjectRequest request_for(const std::string& method, const std::string& key) {
  ObjectRequest request;
  request.method = method;
  request.key = key;
  return request;
}

}  // namespace

TEST_CASE("the bucket is in the path or in the host, after the endpoint's own path") {
  ObjectServer server;
  const std::string port = server.url("").substr(server.url("").rfind(':'));
  // libcurl takes all names that end so for this machine.
  S3Place place = place_of("http://localhost" + port + "/base/");
  S3Requester(place, "b").send(request_for("GET", "a b"));
  place.path_style = false;
  S3Requester(place, "b").send(request_for("GET", "k"));
  S3Requester(place, "b").send(request_for("GET", ""));
  const std::vector<ServedRequest> requests = server.requests();
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].path == "/base/b/a b");
  CHECK(requests[0].headers.at("host") == "localhost" + port);
  CHECK(requests[0].headers.at("x-amz-security-token") == "token");
  CHECK(requests[1].path == "/base/k");
  CHECK(requests[1].headers.at("host") == "b.localhost" + port);
  CHECK(requests[2].path == "/base");
}

TEST_CASE("without credentials nothing is signed") {
  ObjectServer server;
  S3Place place = place_of(server.url(""));
  place.credentials = nullptr;
  S3Requester(place, "b").send(request_for("GET", "k"));
  REQUIRE(server.requests().size() == 1);
  for (const char* name : {"authorization", "x-amz-date", "x-amz-security-token"})
    CHECK_FALSE(server.requests()[0].headers.contains(name));
}

TEST_CASE(
    "an answer without a body tells of a wrong clock by its date, and of old keys by its status") {
  ObjectServer server;
  int fetched = 0;
  S3Place place = place_of(server.url(""));
  place.credentials = std::make_shared<CredentialSource>([&] {
    return Credentials{"key" + std::to_string(++fetched), "secret", "token", 0};
  });
  std::string date = "Fri, 24 May 2013 00:00:00 GMT";
  server.before = [&](const ServedRequest&, int number) -> std::optional<ServedAnswer> {
    if (number > 1) return std::nullopt;
    return ServedAnswer{403, {{"Date", date}}, "", {}};
  };
  S3Requester requester(place, "b");
  CHECK(requester.send(request_for("HEAD", "k")).status == 404);
  const std::vector<ServedRequest> requests = server.requests();
  REQUIRE(requests.size() == 3);
  CHECK_FALSE(requests[0].headers.at("x-amz-date").starts_with("2013"));
  CHECK(requests[1].headers.at("x-amz-date").starts_with("20130524T"));
  CHECK(requests[1].headers.at("authorization").find("=key1/") != std::string::npos);
  CHECK(requests[2].headers.at("authorization").find("=key2/") != std::string::npos);
  // Another answer changes neither.
  server.before = [](const ServedRequest&, int) {
    return std::optional(ServedAnswer{403, {}, "", {}});
  };
  CHECK(requester.send(request_for("GET", "k")).status == 403);
  CHECK(server.requests().size() == 4);
}

TEST_CASE("a region is taken over once for a request, and only if it is one") {
  ObjectServer server;
  std::string region = "eu-west-9";
  server.before = [&](const ServedRequest&, int) -> std::optional<ServedAnswer> {
    ServedAnswer moved = served_error(400, "AuthorizationHeaderMalformed");
    moved.body =
        "<Error><Code>AuthorizationHeaderMalformed</Code><Region>" + region + "</Region></Error>";
    return moved;
  };
  S3Requester requester(place_of(server.url("")), "b");
  CHECK(requester.send(request_for("GET", "k")).status == 400);
  CHECK(server.requests().size() == 2);
  CHECK(server.requests()[1].headers.at("authorization").find("/eu-west-9/") != std::string::npos);
  region = "no/region";
  CHECK(requester.send(request_for("GET", "k")).status == 400);
  CHECK(server.requests().size() == 3);
}

TEST_CASE("a range must be the one that was asked for") {
  ObjectServer server;
  S3Requester requester(place_of(server.url("")), "b");
  std::string got;
  const auto fetch = [&](const ObjectRange& range, const ServedAnswer& answer) {
    got.clear();
    server.before = [&](const ServedRequest&, int) { return std::optional(answer); };
    requester.fetch(range,
                    [&](std::span<const char> bytes) { got.append(bytes.data(), bytes.size()); });
    return got;
  };
  const ObjectRange whole{"k", "s3://b/k", "v", 4, 0, 4}, part{"k", "s3://b/k", "v", 9, 2, 4};
  const auto with = [](int status, const std::string& range, const std::string& bytes) {
    ServedAnswer answer{status, {}, bytes, {}};
    if (!range.empty()) answer.headers["Content-Range"] = range;
    return answer;
  };
  CHECK(fetch(whole, with(200, "", "text")) == "text");
  CHECK(fetch(part, with(206, "bytes 2-5/9", "text")) == "text");
  for (const ServedAnswer& other :
       {with(200, "", "text"), with(206, "", "text"), with(206, "bytes 2-4/9", "tex"),
        with(206, "bytes 1-5/9", "atext"), with(206, "items 2-5/9", "text")})
    CHECK_THROWS_WITH(fetch(part, other), Catch::Contains("other bytes"));
  CHECK(got.empty());
  ServedAnswer changed = with(206, "bytes 2-5/9", "text");
  changed.headers["ETag"] = "\"w\"";
  CHECK_THROWS_WITH(fetch(part, changed), Catch::Contains("changed"));
  CHECK_THROWS_WITH(fetch(part, served_error(416, "InvalidRange")), Catch::Contains("changed"));
  CHECK(got.empty());
}

TEST_CASE("a store that is full ends the run") {
  ObjectAnswer answer;
  answer.status = 507;
  CHECK_THROWS_AS(fail_write("write", "s3://b/k", answer), Stopped);
  CHECK(run_ends());
  CHECK_THAT(run_end_message(), Catch::Contains("s3://b/k"));
  forget_run_end();
  answer.status = 403;
  answer.error.code = "QuotaExceeded";
  CHECK_THROWS_AS(fail_write("write", "s3://b/k", answer), Stopped);
  forget_run_end();
  answer.error.code = "AccessDenied";
  CHECK_THROWS_AS(fail_write("write", "s3://b/k", answer), Error);
  CHECK_FALSE(run_ends());
}
