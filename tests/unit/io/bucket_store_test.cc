// The store in a bucket: whole objects, one winner, and answers that are lost.
// SPDX-License-Identifier: Apache-2.0
#include "io/remote/bucket_store.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "base/error.h"
#include "io/object_server.h"

using namespace vfm;
using namespace vfm::io;

TEST_CASE("a bucket keeps what a store promises") {
  ObjectServer server;
  BucketStore store(ObjectServer::new_bucket() + "/a/b");
  store.check_conditions();
  CHECK(store.list("").empty());
  CHECK_FALSE(store.facts("x/y"));
  CHECK_FALSE(store.read("x/y"));
  CHECK_FALSE(store.remove("x/y"));
  CHECK_THROWS_WITH(store.read_range("x/y", 0, 1), Catch::Contains("x/y"));
  CHECK(store.create("x/y", "0123456789"));
  CHECK_FALSE(store.create("x/y", "2"));
  CHECK(store.read("x/y")->contents == "0123456789");
  CHECK(store.facts("x/y")->bytes == 10);
  CHECK(store.read_range("x/y", 2, 3) == "234");
  CHECK(store.read_range("x/y", 8, 30) == "89");
  CHECK(store.read_range("x/y", 11, 3) == "");
  const std::string version = store.facts("x/y")->version;
  CHECK(store.replace("x/y", "3", version));
  CHECK_FALSE(store.replace("x/y", "4", version));
  CHECK_FALSE(store.replace("none", "4", version));
  CHECK(store.read("x/y")->contents == "3");
  store.write("x/.hidden", "");
  store.write("x/b/c", "");
  store.write("x/a", "");
  CHECK(store.list("x") == std::vector<std::string>{"a", "b/", "y"});
  CHECK(store.list("") == std::vector<std::string>{"x/"});
  CHECK(store.remove("x/y"));
  CHECK_FALSE(store.facts("x/y"));
  store.sweep("");
}

TEST_CASE("of many writers one creates an object, also if answers are lost or in conflict") {
  ObjectServer server;
  std::atomic<int> writes{0}, created{0};
  server.before = [&](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    if (request.method == "PUT" && ++writes % 3 == 0)
      return served_error(409, "ConditionalRequestConflict");
    return std::nullopt;
  };
  server.after = [&](const ServedRequest& request, int, ServedAnswer& answer) {
    if (request.method == "PUT" && answer.status == 200) answer.status = 0;  // every winner's
  };
  BucketStore store(ObjectServer::new_bucket());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { created += store.create("x", std::to_string(i)); });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(created == 1);
  CHECK(store.replace("x", "new", store.facts("x")->version));
  CHECK(store.read("x")->contents == "new");
}

TEST_CASE("a store that does not keep conditions is found out, and no probe is left") {
  ObjectServer server;
  const auto broken = [&](const std::string& header, const ServedAnswer& answer, int skip) {
    server.before = [=, seen = 0](const ServedRequest& request,
                                  int) mutable -> std::optional<ServedAnswer> {
      if (!request.headers.contains(header) || request.method != "PUT" || seen++ < skip)
        return std::nullopt;
      return answer;
    };
    const std::string bucket = ObjectServer::new_bucket();
    std::string message;
    try {
      BucketStore(bucket).check_conditions();
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      message = error.what();
    }
    for (const ServedRequest& request : server.requests())
      CHECK_FALSE(server.get(request.path));
    return message;
  };
  const ServedAnswer done{200, {{"ETag", "\"e\""}}, "", {}};
  const ServedAnswer lost = served_error(412, "PreconditionFailed");
  CHECK_THAT(broken("if-none-match", lost, 0), Catch::Contains("no object can be created"));
  CHECK_THAT(broken("if-none-match", done, 1), Catch::Contains("second create"));
  CHECK_THAT(broken("if-match", lost, 0), Catch::Contains("cannot be replaced by its version"));
  CHECK_THAT(broken("if-match", done, 1), Catch::Contains("older version"));
  CHECK(broken("none", done, 0).empty());
}

TEST_CASE("conditions are tried once for each bucket") {
  ObjectServer server;
  const std::string bucket = ObjectServer::new_bucket();
  BucketStore(bucket + "/a").check_conditions();
  const std::size_t asked = server.requests().size();
  BucketStore(bucket + "/b").check_conditions();
  CHECK(server.requests().size() == asked);
  BucketStore(ObjectServer::new_bucket()).check_conditions();
  CHECK(server.requests().size() == 2 * asked);
}
