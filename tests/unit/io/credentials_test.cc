// Keys of files, containers and instances, and their renewal.
// SPDX-License-Identifier: Apache-2.0
#include "io/remote/credentials.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>

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
    for (const char* name : {"AWS_ACCESS_KEY_ID",
                             "AWS_SECRET_ACCESS_KEY",
                             "AWS_SESSION_TOKEN",
                             "AWS_PROFILE",
                             "AWS_REGION",
                             "AWS_DEFAULT_REGION",
                             "AWS_ENDPOINT_URL_S3",
                             "AWS_ENDPOINT_URL",
                             "AWS_CONFIG_FILE",
                             "AWS_SHARED_CREDENTIALS_FILE",
                             "AWS_EC2_METADATA_DISABLED",
                             "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                             "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                             "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                             "AWS_WEB_IDENTITY_TOKEN_FILE",
                             "AWS_ROLE_ARN",
                             "AWS_ROLE_SESSION_NAME",
                             "AWS_ENDPOINT_URL_STS",
                             "VFM_S3_ANONYMOUS",
                             "AWS_CA_BUNDLE"})
      ::unsetenv(name);
    set("AWS_CONFIG_FILE", "/nonexistent/config");
    set("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials");
    set("AWS_EC2_METADATA_DISABLED", "true");
  }
};

/// The message of the Error{usage} that `act` throws.
template <class Act>
std::string usage_error_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what();
  }
  FAIL("no error");
  return "";
}

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

TEST_CASE("a source that is asked for and cannot be used is an error, and not the next source") {
  const AwsVariables variables;
  const TemporaryFolder folder;
  const std::string keys = "aws_access_key_id = k\naws_secret_access_key = s\n";
  const auto error_of = [&](const std::string& config, const std::string& credentials = "") {
    write_file(folder / "config", "[profile p]\n" + config);
    write_file(folder / "credentials", "[p]\n" + credentials);
    variables.set("AWS_CONFIG_FILE", folder / "config");
    variables.set("AWS_SHARED_CREDENTIALS_FILE", folder / "credentials");
    const std::string checked =
        usage_error_of([] { place_by_environment("p").credentials->check(); });
    CHECK(usage_error_of([] { place_by_environment("p").credentials->get(); }) == checked);
    return checked;
  };
  for (const char* setting :
       {"credential_process = /bin/keys", "sso_session = x", "sso_start_url = https://x",
        "login_session = x", "source_profile = q", "role_arn = arn:aws:iam::1:role/r"})
    CHECK_THAT(error_of(setting),
               Catch::Contains(std::string(setting, 0, std::string(setting).find(' '))) &&
                   Catch::Contains("aws configure export-credentials --format env"));
  // AWS's programs would take the role, and not the keys beside it.
  CHECK_THAT(error_of("role_arn = r\nsource_profile = p\n", keys), Catch::Contains("role_arn"));
  CHECK_THAT(error_of("sso_account_id = 1\nsso_role_name = r\n", keys), Catch::Contains("sso_"));
  CHECK_THAT(error_of("aws_access_key_id = k\n"), Catch::Contains("aws_secret_access_key"));
  CHECK_THAT(error_of("web_identity_token_file = t\n"), Catch::Contains("role_arn"));
  write_file(folder / "config", "[profile \"p\"]\ncredential_process = /bin/keys\n" + keys);
  place_by_environment("p").credentials->check();
  CHECK(place_by_environment("p").credentials->get().key_id == "k");
  variables.set("AWS_ACCESS_KEY_ID", "k");
  CHECK_THAT(usage_error_of([] { place_by_environment().credentials->check(); }),
             Catch::Contains("AWS_SECRET_ACCESS_KEY"));
}

TEST_CASE("credentials are renewed before they expire, and the older ones serve while they can") {
  double now = 1000;
  int fetches = 0;
  bool fails = false;
  CredentialSource source(
      [&] {
        ++fetches;
        if (fails) now += 20;
        if (fails) fail("no answer");
        return Credentials{"k" + std::to_string(fetches), "s", "", now + 900};
      },
      nullptr, [&] { return now; });
  CHECK(source.get().key_id == "k1");
  now += 500;
  CHECK(source.get().key_id == "k1");
  now += 101;
  CHECK(source.get().key_id == "k2");
  fails = true;
  now += 700;
  CHECK(source.get().key_id == "k2");
  CHECK(source.get().key_id == "k2");
  CHECK(fetches == 3);
  now += 181;
  CHECK_THROWS_WITH(source.get(), Catch::Contains("no answer"));
}

TEST_CASE("a web identity gives the credentials of a role, and its token is read at each time") {
  ObjectServer server;
  const AwsVariables variables;
  const TemporaryFolder folder;
  const std::string first = "eyJhbGciOi.first.aSignature", second = "eyJhbGciOi.second.aSignature";
  write_file(folder / "token", first + "\n");
  server.before = [&](const ServedRequest& request, int number) -> std::optional<ServedAnswer> {
    CHECK(request.method == "POST");
    CHECK(request.path == "/");
    CHECK_FALSE(request.headers.contains("authorization"));
    CHECK_THAT(request.headers.at("content-type"),
               Catch::Contains("application/x-www-form-urlencoded"));
    CHECK_THAT(request.body, Catch::Contains("Action=AssumeRoleWithWebIdentity&") &&
                                 Catch::Contains("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&") &&
                                 Catch::Contains("&Version=2011-06-15&"));
    if (number == 0) return served_error(503, "ServiceUnavailable");
    if (number == 1)
      return ServedAnswer{
          200,
          {},
          "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
          "<AccessKeyId>k1</AccessKeyId><SecretAccessKey>s1</SecretAccessKey>"
          "<SessionToken>t1</SessionToken><Expiration>2013-05-24T00:00:00Z</Expiration>"
          "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
          {}};
    const std::string said = number == 2 ? "Not authorized" : "no such token: " + second;
    return ServedAnswer{403,
                        {},
                        "<ErrorResponse><Error><Code>AccessDenied</Code><Message>" + said +
                            "</Message></Error></ErrorResponse>",
                        {}};
  };
  variables.set("AWS_WEB_IDENTITY_TOKEN_FILE", folder / "token");
  CHECK_THAT(usage_error_of([] { place_by_environment().credentials->check(); }),
             Catch::Contains("AWS_ROLE_ARN"));
  variables.set("AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
  variables.set("AWS_ENDPOINT_URL_STS", server.url(""));
  const auto source = place_by_environment().credentials;
  source->check();
  CHECK(server.requests().empty());
  const Credentials keys = source->get();
  CHECK(keys.key_id == "k1");
  CHECK(keys.secret == "s1");
  CHECK(keys.token == "t1");
  CHECK(keys.expires == 1369353600);
  CHECK_THAT(server.requests()[1].body, Catch::EndsWith("WebIdentityToken=" + first) &&
                                            Catch::Contains("RoleSessionName=vfm-"));
  // A profile names them too.
  write_file(folder / "token", second);
  write_file(folder / "config",
             "[profile p]\nrole_arn = arn:aws:iam::1:role/r\n"
             "role_session_name = mine\nweb_identity_token_file = " +
                 (folder / "token") + "\n");
  variables.set("AWS_CONFIG_FILE", folder / "config");
  source->forget(keys);
  const std::string refused = usage_error_of([&] { source->get(); });
  CHECK_THAT(refused, Catch::Contains("403 AccessDenied: Not authorized") &&
                          Catch::Contains("AWS_WEB_IDENTITY_TOKEN_FILE"));
  CHECK_THAT(server.requests()[2].body, Catch::EndsWith("WebIdentityToken=" + second));
  ::unsetenv("AWS_WEB_IDENTITY_TOKEN_FILE");
  ::unsetenv("AWS_ROLE_ARN");
  const std::string repeated = usage_error_of([] { place_by_environment("p").credentials->get(); });
  CHECK_THAT(repeated, Catch::Contains("AccessDenied") && !Catch::Contains("second") &&
                           Catch::Contains("web_identity_token_file"));
  CHECK_THAT(server.requests()[3].body, Catch::Contains("RoleSessionName=mine&"));
  std::filesystem::remove(folder / "token");
  CHECK_THAT(usage_error_of([] { place_by_environment("p").credentials->get(); }),
             Catch::Contains("token"));
  CHECK(server.requests().size() == 4);
}
