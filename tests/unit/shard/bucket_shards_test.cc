// Shards in a bucket: what is read is what a disk gives, with few requests.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/kept_objects.h"
#include "io/object_server.h"
#include "shard/columns.h"
#include "shard/dataset_meta.h"
#include "shard/media_index.h"
#include "shard/reader.h"
#include "shard/receipt.h"
#include "shard/shard_input.h"
#include "shard/writer.h"
#include "support/samples.h"

using namespace vfm;
using namespace vfm::shard;
using Catch::Contains;

namespace {

constexpr int kSamples = 200;

void write_many(const std::string& tar) {
  Writer writer(tar);
  for (int i = 0; i < kSamples; ++i)
    writer.add(make_sample("k" + std::to_string(i), std::string(5000, static_cast<char>(i))));
  const Json record = writer.finish();
  check_written(tar, record);
}

template <class Reader>
std::string all_of(Reader& reader) {
  std::string all;
  for (Sample sample; reader.next(sample);) {
    all += sample.key;
    for (const Member& member : sample.members)
      all += member.extension + member.data;
  }
  return all;
}

std::string all_by_index(const std::string& tar) {
  std::string all;
  for_each_sample(tar, [&](const Sample& sample) {
    all += sample.key;
    for (const Member& member : sample.members)
      all += member.extension + member.data;
  });
  return all;
}

/// The same shard on a disk and in a bucket.
struct TwoShards {
  TwoShards() {
    write_many(near);
    write_many(far);
  }
  TemporaryFolder folder;
  ObjectServer server;
  std::string bucket = ObjectServer::new_bucket();
  std::string near = folder / "a.tar", far = bucket + "/x/a.tar";
};

}  // namespace

TEST_CASE("a shard has the same files with the same bytes in a bucket") {
  const TwoShards two;
  const std::string there = two.bucket + "/x";
  const auto here = io::entries(two.folder.path), objects = io::entries(there);
  REQUIRE(here.size() == objects.size());
  for (std::size_t i = 0; i < here.size(); ++i) {
    CHECK(here[i].name == objects[i].name);
    CHECK(io::read_file(two.folder / here[i].name) ==
          io::read_file(io::join_path(there, objects[i].name)));
  }
  CHECK_THROWS_WITH(check_written(two.bucket + "/none.tar", {{"bytes", 1}, {"samples", 1}}),
                    Contains("cannot open"));
}

TEST_CASE("samples of a shard in a bucket are those of the shard on a disk") {
  TwoShards two;
  const std::string all = all_by_index(two.near);
  int before = two.server.count("GET");
  CHECK(all_by_index(two.far) == all);
  CHECK(two.server.count("GET") - before < kSamples / 4);  // by read-ahead
  before = two.server.count("GET");
  JoinedReader joined({two.far});
  CHECK(all_of(joined) == all);
  CHECK(two.server.count("GET") - before < kSamples / 4);
  StreamReader stream(two.far);
  CHECK(all_of(stream) == all);
  io::remove_file(energon_index_path(two.far));
  CHECK(all_by_index(two.far) == all);
  CHECK(TarOffsets::scan(two.far, "a").at == TarOffsets::scan(two.near, "a").at);
}

TEST_CASE("a shard that is hashed, looked through and used comes from the store once") {
  TwoShards two;
  const std::string all = all_by_index(two.near), tar = io::read_file(two.near);
  // As of a program that stores no hash.
  two.server.put(two.far.substr(std::string("s3:/").size()), tar);
  const std::size_t before = two.server.requests().size();
  const auto asked = [&](const std::string& method) {
    const std::vector<ServedRequest> sent = two.server.requests();
    return std::count_if(sent.begin() + static_cast<std::ptrdiff_t>(before), sent.end(),
                         [&](const ServedRequest& request) {
                           return request.method == method && request.path.ends_with("/x/a.tar");
                         });
  };
  const auto use = [&] {
    CHECK(io::hash_file(two.far) == io::hash_file(two.near));
    CHECK(all_by_index(two.far) == all);
    JoinedReader joined({two.far});
    CHECK(all_of(joined) == all);
  };
  const io::KeptObjects kept({two.near, two.far});
  use();
  CHECK(asked("HEAD") == 1);
  CHECK(asked("GET") <= 4);  // pieces of read-ahead
  const auto requests = asked("GET");
  // An object that changes is not mixed with what is kept of it.
  two.server.put(two.far.substr(std::string("s3:/").size()), tar.substr(0, tar.size() / 2));
  CHECK(all_by_index(two.far) == all);
  CHECK(asked("GET") == requests);
  io::KeptObjects::forget(two.far);
  StreamReader shorter(two.far);
  CHECK_THROWS_WITH(all_of(shorter), Contains(two.far));
  CHECK(asked("HEAD") == 2);
}

TEST_CASE("a compressed shard in a bucket is read by ranges, in order and here and there") {
  TwoShards two;
  const std::string far = two.bucket + "/y/a.tar.zst";
  write_many(far);
  const std::string all = all_by_index(two.near);
  int before = two.server.count("GET");
  CHECK(all_by_index(far) == all);
  CHECK(two.server.count("GET") - before < kSamples / 4);  // a frame has many samples
  const IndexedReader near(two.near), packed(far);
  CHECK(packed.remote() == nullptr);
  before = two.server.count("GET");
  for (const std::int64_t row : {150, 3})
    CHECK(packed.read(row).find("txt")->front() == near.read(row).find("txt")->front());
  CHECK(two.server.count("GET") - before <= 4);
  StreamReader stream(far);
  CHECK(all_of(stream) == all);
}

TEST_CASE("what is kept of an object are the bytes from its beginning on") {
  TwoShards two;
  const std::string tar = io::read_file(two.near);
  const io::KeptObjects kept({two.far});
  const io::File file = io::File::open_read(two.far);
  const auto read = [&](std::uint64_t offset, std::size_t size) {
    const int before = two.server.count("GET");
    std::string bytes(size, '\0');
    file.pread_exact(bytes.data(), size, offset);
    CHECK(bytes == tar.substr(offset, size));
    return two.server.count("GET") - before;
  };
  CHECK(read(100, 50) == 1);  // not at the beginning
  CHECK(read(100, 50) == 1);
  CHECK(read(0, 120) == 1);
  CHECK(read(100, 50) == 1);  // in part
  CHECK(read(100, 50) == 0);
  CHECK(read(0, 150) == 0);
  CHECK(read(140, 500) == 1);
  CHECK(read(0, 640) == 0);
  CHECK(read(0, 641) == 1);
  io::File reader = io::File::open_read(two.far);
  std::string some(600, '\0');
  const int before = two.server.count("GET");
  CHECK(reader.read_some(some.data(), some.size()) == 600);
  CHECK(some == tar.substr(0, 600));
  CHECK(two.server.count("GET") == before);
  CHECK(reader.read_some(some.data(), some.size()) == 41);
  REQUIRE(reader.read_some(some.data(), some.size()) > 0);
  CHECK(some.substr(0, 9) == tar.substr(641, 9));
  CHECK(two.server.count("GET") == before + 1);
}

TEST_CASE("samples of a shard in a bucket are read here and there, by many threads") {
  const TwoShards two;
  const IndexedReader near(two.near), far(two.far);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      ReadBuffer a, b;
      for (int i = 0; i < 50; ++i) {
        const int row = (t % 2 == 0 ? i : i * 37 + t) % kSamples;
        const SampleView& one = near.view(row, a);
        const SampleView& other = far.view(row, b);
        wrong += one.key != other.key || one.find("txt") != other.find("txt") ||
                 one.members[1].offset != other.members[1].offset;
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(wrong == 0);
  CHECK(far.key(7) == "k7");
  CHECK(far.remote() != nullptr);
  CHECK(near.remote() == nullptr);
}

TEST_CASE("compressed and damaged tars in a bucket are told as on a disk") {
  const TwoShards two;
  output_of("gzip -k " + two.near);
  const std::string packed = io::read_file(two.near + ".gz");
  const std::string far = two.bucket + "/a.tar.gz";
  io::write_file(far, packed);
  StreamReader near_packed(two.near), far_packed(far);
  CHECK(all_of(far_packed) == all_of(near_packed));
  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // the CRC
  io::write_file(far, damaged);
  CHECK_THROWS_WITH(StreamReader(far), Contains(far) && Contains("gzip says"));
  const std::string tar = io::read_file(two.near);
  const std::string cut = two.bucket + "/cut.tar";
  io::write_file(cut, tar.substr(0, tar.size() / 2));
  StreamReader reader(cut);
  CHECK_THROWS_WITH(all_of(reader), Contains(cut));
  CHECK_THROWS_WITH(StreamReader(two.bucket + "/none.tar"), Contains("no such object"));
}

TEST_CASE("an error of the server while a tar is read names the object, not the tar's format") {
  TwoShards two;
  StreamReader reader(two.far);
  two.server.before = [](const ServedRequest&, int) -> std::optional<ServedAnswer> {
    return served_error(403, "AccessDenied");
  };
  CHECK_THROWS_WITH(all_of(reader),
                    Contains(two.far) && Contains("403") && !Contains("not a readable tar"));
}

TEST_CASE("the columns beside a shard in a bucket, and the folders of datasets, are found") {
  const TwoShards two;
  write_many(two.bucket + "/x/a.caption.tar");
  io::Record record{"shard", Json{{"kind", "shard"}, {"path", two.far}}, "a test"};
  complete_shard(record);
  CHECK(record.json->at("columns") ==
        Json{{"clip", two.far}, {"caption", two.bucket + "/x/a.caption.tar"}});
  CHECK(is_column_tar(two.bucket + "/x/a.caption.tar"));
  CHECK_FALSE(is_column_tar(two.bucket + "/x/b.caption.tar"));
  CHECK_FALSE(tars_version(record).empty());
  check_shard_bytes(record);
  std::vector<io::Fault> faults;
  ShardInput input({two.far, two.bucket + "/x/a.caption.tar"},
                   [&](io::Fault fault) { faults.push_back(std::move(fault)); });
  const auto first = input.next();
  REQUIRE(first);
  CHECK(first->path() == two.far);
  CHECK_FALSE(input.next());
  CHECK(faults.empty());
  CHECK_THROWS_WITH(ShardInput({two.bucket + "/x"}, [](io::Fault) {}),
                    Contains("name them: '" + two.bucket + "/x'/*.tar"));
}

TEST_CASE("Energon's index is made locally, and read from a bucket") {
  ObjectServer server;
  const std::string root = ObjectServer::new_bucket() + "/set";
  Writer writer(root + "/train/b-000000.tar");
  writer.add(make_sample("k1", "text"));
  const Json record = writer.finish();
  const std::vector<DatasetShard> shards = {
      {"train/b-000000.tar", "train", record["samples"], record["bytes"], record["xxh3"]}};
  const MediaOf media = [](std::size_t, std::int64_t, std::string_view, std::string_view ext) {
    return ext == "txt" ? MediaMetadata{"av", Json{{"width", 7}}} : MediaMetadata{};
  };
  write_energon_meta(root, shards, media);
  CHECK(MediaIndex(root).find("k1", "txt") == Json{{"width", 7}});
  const int puts = server.count("PUT");
  write_energon_meta(root, shards, media);  // is there
  CHECK(server.count("PUT") == puts);
  CHECK_THROWS_WITH(MediaIndex(root + "/train"), Contains("index.sqlite"));
}
