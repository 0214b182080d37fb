// SPDX-License-Identifier: Apache-2.0
#include "io/remote/address.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace vfm;
using namespace vfm::io;

TEST_CASE("addresses of objects have a bucket and a key") {
  const ObjectAddress object = address_of("s3://b-1.x/a/b c?d.tar");
  CHECK(object.kind == ObjectAddress::Kind::s3);
  CHECK(object.bucket == "b-1.x");
  CHECK(object.key == "a/b c?d.tar");
  CHECK(object.text == "s3://b-1.x/a/b c?d.tar");
  CHECK(address_of("s3://b").key.empty());
  CHECK(address_of("s3://b/").key.empty());
  const ObjectAddress web = address_of("https://h:8/a.tar");
  CHECK(web.kind == ObjectAddress::Kind::http);
  CHECK(web.key == "https://h:8/a.tar");
}

TEST_CASE("paths and other schemes are no addresses of objects") {
  for (const char* path : {"a/b", "/a", "./s3://b/k", "gs://b/k", "file:///a", "s3:/b/k", ""})
    CHECK_FALSE(is_remote(path));
  CHECK(is_bucket("msc://p/k"));
  CHECK_FALSE(is_bucket("https://h/k"));
}

TEST_CASE("an address that cannot be asked is refused with a reason") {
  for (const char* path :
       {"s3://", "s3:///k", "s3://b/../k", "s3://b/./k", "s3://a b/k", "s3://b/a\nb", "gs://b/k",
        "https://", "https://h/a?X-Amz-Signature=1", "https://h/a#b"}) {
    INFO(path);
    try {
      address_of(path);
      FAIL("not refused");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
    }
  }
  for (const char* path : {"s3://me:pa55@b/k", "https://me:pa55@h/k"})
    CHECK_THROWS_WITH(address_of(path), !Catch::Contains("pa55"));
  CHECK_THROWS_AS(address_of("s3://b/" + std::string(1025, 'k')), Error);
}
