// Keys of files, containers and instances, and their renewal.
// SPDX-License-Identifier: Apache-2.0
#include "io/remote/credentials.h"

#include <stdlib.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/object_server.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;

namespace {

/// The environment of these tests: no variable of AWS, until the end of the test.
class AwsVariables {
 public:
  AwsVariables() { clear(); }
  ~AwsVariables() { clear(); }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

 private:
  static void clear() {
    for (const char* name :
         {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
          "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL",
          "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_EC2_METADATA_DISABLED",
          "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
          "AWS_EC2_METADATA_SERVICE_ENDPOINT", "VFM_S3_ANONYMOUS", "AWS_CA_BUNDLE"})
      ::unsetenv(name);
    set("AWS_CONFIG_FILE", "/nonexistent/config");
    set("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials");
    set("AWS_EC2_METADATA_DISABLED", "true");
  }
};

}  // namespace

TEST_CASE("variables come before files, and files have profiles") {
  const AwsVariables variables;
  const TemporaryFolder folder;
  write_file(folder / "config",
             "# a comment\n[default]\nregion = eu-a-1\n[profile far]\nregion=us-b-2\n"
             "services = mine\ns3 =\n  addressing_style = virtual\n[services mine]\ns3 =\n"
             "  endpoint_url = https://far:1\n[profile sso]\nsso_session = x\n");
  write_file(folder / "credentials",
             "[default]\naws_access_key_id = k1\naws_secret_access_key = s=1\n"
             "[far]\naws_access_key_id=k2\naws_secret_access_key=s2\naws_session_token=t2\n");
  variables.set("AWS_CONFIG_FILE", folder / "config");
  variables.set("AWS_SHARED_CREDENTIALS_FILE", folder / "credentials");
  S3Place place = place_by_environment();
  CHECK(place.region == "eu-a-1");
  CHECK(place.endpoint.empty());
  CHECK(place.credentials->get().key_id == "k1");
  CHECK(place.credentials->get().secret == "s=1");
  place = place_by_environment("far");
  CHECK(place.region == "us-b-2");
  CHECK(place.endpoint == "https://far:1");
  CHECK(place.path_style == false);
  CHECK(place.credentials->get().token == "t2");
  variables.set("AWS_ACCESS_KEY_ID", "k3");
  variables.set("AWS_SECRET_ACCESS_KEY", "s3");
  variables.set("AWS_REGION", "ap-c-3");
  variables.set("AWS_ENDPOINT_URL", "http://near:2");
  place = place_by_environment();
  CHECK(place.region == "ap-c-3");
  CHECK(place.endpoint == "http://near:2");
  CHECK(place.credentials->get().key_id == "k3");
  CHECK(place_by_environment("far").credentials->get().key_id == "k2");
  CHECK_THROWS_WITH(place_by_environment("sso").credentials->get(), Catch::Contains("sso_session"));
  CHECK_THROWS_WITH(place_by_environment("none"), Catch::Contains("none"));
  variables.set("VFM_S3_ANONYMOUS", "1");
  CHECK_FALSE(place_by_environment().credentials);
}

TEST_CASE("without keys the error says what to set") {
  const AwsVariables variables;
  try {
    place_by_environment().credentials->get();
    FAIL("keys");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK_THAT(error.what(),
               Catch::Contains("AWS_ACCESS_KEY_ID") && Catch::Contains("VFM_S3_ANONYMOUS"));
  }
}

TEST_CASE("a container's and an instance's keys are fetched, and again before they expire") {
  ObjectServer server;
  const AwsVariables variables;
  std::string expires = "2100-01-01T00:00:00Z";
  server.before = [&](const ServedRequest& request, int number) -> std::optional<ServedAnswer> {
    const std::string keys = R"({"AccessKeyId":"k)" + std::to_string(number) +
                             R"(","SecretAccessKey":"s","Token":"t","Expiration":")" + expires +
                             "\"}";
    const std::string roles = "/latest/meta-data/iam/security-credentials/";
    if (request.path == "/container")
      return request.headers.at("authorization") == "word" ? ServedAnswer{200, {}, keys, {}}
                                                           : served_error(403, "");
    if (request.path == "/latest/api/token" && request.method == "PUT")
      return ServedAnswer{200, {}, "session", {}};
    if (request.headers.at("x-aws-ec2-metadata-token") != "session") return served_error(401, "");
    if (request.path == roles) return ServedAnswer{200, {}, "role\n", {}};
    return request.path == roles + "role" ? ServedAnswer{200, {}, keys, {}} : served_error(404, "");
  };
  variables.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url("/container"));
  variables.set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "word");
  auto source = place_by_environment().credentials;
  CHECK(source->get().key_id == "k0");
  CHECK(source->get().key_id == "k0");
  source->forget(source->get());
  CHECK(source->get().key_id == "k1");
  CHECK(source->get().token == "t");
  variables.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://elsewhere/container");
  CHECK_THROWS_AS(place_by_environment().credentials->get(), Error);
  ::unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  ::unsetenv("AWS_EC2_METADATA_DISABLED");
  variables.set("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url(""));
  source = place_by_environment().credentials;
  CHECK(source->get().key_id == "k4");
  CHECK(source->get().secret == "s");
}

TEST_CASE("keys of a file are read as credential_process writes them") {
  const TemporaryFolder folder;
  write_file(folder / "keys", R"({"Version":1,"AccessKeyId":"k","SecretAccessKey":"s",)"
                              R"("SessionToken":"t","Expiration":"2013-05-24T00:00:00Z"})");
  const Credentials keys = credentials_of_file(folder / "keys");
  CHECK(keys.key_id == "k");
  CHECK(keys.token == "t");
  CHECK(keys.expires == 1369353600);
  write_file(folder / "keys", R"({"AccessKeyId":"k"})");
  CHECK_THROWS_AS(credentials_of_file(folder / "keys"), Error);
}
