// Plain files read as if they were a tar.
// SPDX-License-Identifier: Apache-2.0
#include "shard/file_list.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "shard/reader.h"
#include "shard/writer.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::shard;

namespace {

Json entry(const std::string& extension, const std::string& data) {
  return {{"extension", extension}, {"bytes", data.size()}, {"xxh3", hash_hex(data)}};
}

Json sample_of(const std::string& key, const std::vector<Json>& files) {
  Json sample;
  sample["key"] = key;
  sample["files"] = files;
  return sample;
}

Json list_of(const std::vector<Json>& samples) {
  Json list;
  list["samples"] = samples;
  return list;
}

std::vector<Sample> read_all(const std::string& path) {
  std::vector<Sample> samples;
  for_each_sample(path, [&](Sample& sample) { samples.push_back(sample); });
  return samples;
}

}  // namespace

TEST_CASE("a list of files is read as the tar that they would make") {
  const TemporaryFolder folder;
  const std::string big(5000, 'x');
  folder.write("a.mp4", big);
  folder.write("a.json", "{}");
  folder.write("b.mp4", "");
  folder.write("b.json", "{\"n\":1}");
  const Json list = list_of({sample_of("a", {entry("mp4", big), entry("json", "{}")}),
                             sample_of("b", {entry("mp4", ""), entry("json", "{\"n\":1}")})});
  folder.write("x.files", dump_json(list));
  const auto samples = read_all(folder.path + "/x.files");
  REQUIRE(samples.size() == 2);
  CHECK(samples[0].key == "a");
  CHECK(*samples[0].find("mp4") == big);
  CHECK(*samples[1].find("json") == "{\"n\":1}");

  Writer writer(folder.path + "/y.tar");
  for (const Sample& sample : samples)
    writer.add(sample);
  writer.finish();
  FileListTar tar(folder.path + "/x.files");
  std::string bytes;
  char buffer[700];
  while (const std::size_t got = tar.read(buffer, sizeof buffer))
    bytes.append(buffer, got);
  CHECK((bytes == io::read_file(folder.path + "/y.tar")));
  CHECK(unpack(folder.path + "/x.files", folder.path + "/z.tar", ReadLimits{}).compressed);
  CHECK(TarOffsets::scan(folder.path + "/z.tar", "z").at.size() == 3);

  folder.write("b.json", "{\"n\":2}");
  CHECK_THROWS_WITH(read_all(folder.path + "/x.files"),
                    Catch::Contains("b.json' is not as it was written"));
  folder.write("b.json", "{}");
  CHECK_THROWS_WITH(read_all(folder.path + "/x.files"), Catch::Contains("it has 2 bytes"));
}

TEST_CASE("a list names nothing outside of its folder, and says what is wrong with it") {
  const TemporaryFolder folder;
  folder.write("secret.txt", "secret");
  folder.write("in/.keep", "");
  const std::string list = folder.path + "/in/x.files";
  const auto write = [&](const Json& json) { folder.write("in/x.files", dump_json(json)); };
  const auto sample = [](const std::string& key, const std::string& extension) {
    return list_of({sample_of(key, {entry(extension, "secret")})});
  };
  Json no_array, no_files;
  no_array["samples"] = 1;
  no_files["key"] = "a";
  const std::vector<Json> wrong_ones = {Json::array(),
                                        Json::object(),
                                        no_array,
                                        list_of({no_files}),
                                        sample("../secret", "txt"),
                                        sample("secret", "../txt"),
                                        sample("", "txt"),
                                        sample("__a", "txt"),
                                        sample("a.b", "txt")};
  for (const Json& wrong : wrong_ones) {
    write(wrong);
    CHECK_THROWS_WITH(read_all(list), Catch::Contains("not a list of files"));
  }
  Json negative = entry("txt", "secret");
  negative["bytes"] = -1;
  write(list_of({sample_of("a", {negative})}));
  CHECK_THROWS_AS(read_all(list), Error);
  write(sample("a", "txt"));
  CHECK_THROWS_WITH(read_all(list), Catch::Contains("No such file"));
  write(list_of({}));
  CHECK(read_all(list).empty());
}
