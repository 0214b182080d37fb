// Profiles of MSC, from its documented configuration.
// SPDX-License-Identifier: Apache-2.0
#include "io/remote/msc.h"

#include <stdlib.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/object_server.h"
#include "io/remote/remote_file.h"
#include "io/remote/s3_client.h"
#include "io/remote/upload.h"
#include "support/heard_log.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;

namespace {

constexpr const char* kYaml = R"(profiles:
  data:
    storage_provider:
      type: s8k
      options:
        base_path: bucket/some/where/
        region_name: eu-north-1
        endpoint_url: ${VFM_TEST_MSC}
        s3: {addressing_style: virtual}
    credentials_provider:
      type: S3Credentials
      options: {access_key: key, secret_key: $VFM_TEST_MSC, session_token: t}
    metadata_provider: {type: manifest, options: {manifest_path: .msc_manifests}}
  open: {storage_provider: {type: gcs_s3, options: {base_path: b, signature_version: UNSIGNED}}}
  azure: {storage_provider: {type: azure, options: {base_path: b}}}
  unsafe: {storage_provider: {type: s3, options: {base_path: b, verify: false}}}
  refresh:
    storage_provider: {type: s3, options: {base_path: b}}
    credentials_provider: {type: Other}
  unset: {storage_provider: {type: s3, options: {base_path: $VFM_TEST_UNSET}}}
)";

}  // namespace

TEST_CASE("a profile of MSC has its place, its keys and its manifests") {
  ::setenv("VFM_TEST_MSC", "https://server:9", 1);
  const MscProfile data = msc_profile_of(kYaml, "c.yaml", "data");
  CHECK(data.base_path == "bucket/some/where");
  CHECK(data.place.region == "eu-north-1");
  CHECK(data.place.endpoint == "https://server:9");
  CHECK(data.place.path_style == false);
  CHECK(data.place.checksums);
  CHECK(data.place.credentials->get().key_id == "key");
  CHECK(data.place.credentials->get().secret == "https://server:9");
  CHECK(data.place.credentials->get().token == "t");
  CHECK(data.has_manifest);
  CHECK(data.manifest == ".msc_manifests");
  const MscProfile open = msc_profile_of(kYaml, "c.yaml", "open");
  CHECK(open.place.endpoint == "https://storage.googleapis.com");
  CHECK_FALSE(open.place.credentials);
  CHECK_FALSE(open.place.checksums);
  CHECK(msc_profile_of(R"({"profiles": {"a":	{"storage_provider": {"type": "s3"}}}})", "c.json",
                       "a")
            .base_path.empty());
}

TEST_CASE("a profile that vfm cannot use is refused, and named") {
  for (const char* name : {"azure", "unsafe", "refresh", "unset", "absent"}) {
    INFO(name);
    try {
      msc_profile_of(kYaml, "c.yaml", name);
      FAIL("not refused");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      CHECK_THAT(error.what(), Catch::Contains("c.yaml"));
    }
  }
  for (const char* text :
       {"[", "profiles: [a]", "a: &a [*a]", "", "profiles: {a: {storage_provider: 1}}", "other: 1"})
    CHECK_THROWS_AS(msc_profile_of(text, "c.yaml", "a"), Error);
}

TEST_CASE("a configuration of MSC includes others") {
  const TemporaryFolder folder;
  write_file(folder / "b.yaml",
             "profiles: {b: {storage_provider: {type: s3, options: {base_path: bb}}}}\n");
  CHECK(msc_profile_of("include: [b.yaml]\nprofiles: {}\n", folder / "a.yaml", "b").base_path ==
        "bb");
  CHECK_THROWS_AS(msc_profile_of("include: [c.yaml]\n", folder / "a.yaml", "b"), Error);
}

TEST_CASE("manifests of MSC have parts, and rows with sizes") {
  CHECK(msc_manifest_parts(R"({"version":"1","parts":[{"path":"parts/a.jsonl"}]})", "m") ==
        std::vector<std::string>{"parts/a.jsonl"});
  CHECK_THROWS_AS(msc_manifest_parts(R"({"version":"2","parts":[]})", "m"), Error);
  CHECK_THROWS_WITH(msc_manifest_parts(R"({"version":"1","parts":[{"path":"a.parquet"}]})", "m"),
                    Catch::Contains("a.parquet"));
  const MscRow row = msc_manifest_row(R"({"key":"a/b","size_bytes":5,"last_modified":"x"})", "m");
  CHECK(row.key == "a/b");
  CHECK(row.physical == "a/b");
  CHECK(row.bytes == 5);
  CHECK(msc_manifest_row(R"({"key":"a","size_bytes":5,"physical_path":"c"})", "m").physical == "c");
  for (const char* line :
       {"", "[]", R"({"key":"a"})", R"({"key":"a","size_bytes":-1})", R"({"size_bytes":1})"})
    CHECK_THROWS_AS(msc_manifest_row(line, "m"), Error);
}

TEST_CASE("a manifest of MSC spares the listing, and its profile is only read") {
  ObjectServer server;
  const TemporaryFolder folder;
  const std::string bucket = ObjectServer::new_bucket().substr(5);
  write_file(folder / "config.yaml",
             "profiles: {listed: {storage_provider: {type: s3, options: {base_path: " + bucket +
                 "/base}}, metadata_provider: {type: manifest, options: {manifest_path: ''}}}}\n");
  ::setenv("MSC_CONFIG", (folder / "config.yaml").c_str(), 1);
  const std::string root = "/" + bucket + "/base/", times = root + ".msc_manifests/";
  server.put(root + "a/1", "first");
  server.put(root + "stored/2", "second");
  server.put(root + "unlisted", "third");
  server.put(times + "2025-01-01T00:00:00+00:00/msc_manifest_index.json", "{}");
  server.put(times + "2026-01-01T00:00:00+00:00/msc_manifest_index.json",
             R"({"version":"1","parts":[{"path":"parts/1.jsonl"}]})");
  server.put(times + "2026-01-01T00:00:00+00:00/parts/1.jsonl",
             "{\"key\":\"a/2\",\"size_bytes\":6,\"physical_path\":\"stored/2\"}\n"
             "{\"key\":\"b\",\"size_bytes\":1}\n{\"key\":\"a/1\",\"size_bytes\":5}");
  const ObjectAddress address = address_of("msc://listed/a/2");
  CHECK(address.key == "base/a/2");
  const auto client = S3Client::of(address);
  std::string seen;
  const auto see = [&](const ListedObject& object) {
    seen += object.name + ":" + std::to_string(object.bytes) + ",";
  };
  client->list("base/", false, see);
  CHECK(seen == "a/:0,b:1,");
  seen.clear();
  client->list("base/", true, see);
  CHECK(seen == "a/1:5,a/2:6,b:1,");
  CHECK(read_object("msc://listed/a/2") == "second");
  CHECK(RemoteFile::open("msc://listed/a/2")->size() == 6);
  CHECK_THROWS_WITH(write_object("msc://listed/a/3", "x"), Catch::Contains("manifest"));
  const auto requests = server.requests();
  CHECK(std::count_if(requests.begin(), requests.end(), [](const ServedRequest& request) {
          return request.query.contains("list-type");
        }) == 1);
  ::unsetenv("MSC_CONFIG");
}

TEST_CASE("messages name an object as the user wrote it, and notes name its bucket") {
  ObjectServer server;
  const TemporaryFolder folder;
  const std::string bucket = ObjectServer::new_bucket().substr(5);
  write_file(folder / "config.yaml",
             "profiles: {based: {storage_provider: {type: s3, options: {base_path: " + bucket +
                 "/base}}}, plain: {storage_provider: {type: s3, options: {base_path: ''}}}}\n");
  ::setenv("MSC_CONFIG", (folder / "config.yaml").c_str(), 1);
  int status = 503;
  server.before = [&](const ServedRequest&, int) {
    return std::optional(served_error(status, "Refused"));
  };
  for (const auto& [address, key] :
       {std::pair<std::string, std::string>{"msc://based/a/b", "base/a/b"},
        {"msc://plain/" + bucket + "/k", "k"},
        {"s3://" + bucket + "/k", "k"}}) {
    ::setenv("VFM_NET_SECONDS", "1", 1);
    status = 503;
    const HeardLog heard(LogLevel::info);
    CHECK_THROWS_WITH(read_object(address), Catch::Contains("'" + address + "'"));
    CHECK_THAT(heard.text(), Catch::StartsWith("'" + address + "', try 1: status 503 Refused"));
    status = 403;
    CHECK_THROWS_WITH(write_object(address, "x"), Catch::Contains("'" + address + "'"));
    const auto client = S3Client::of(address_of(address));
    CHECK_THROWS_WITH(client->head(key), Catch::Contains("'" + address + "'"));
  }
  ::unsetenv("MSC_CONFIG");
}
