// Shards of parts of vfm-clip that another host has just written.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/input_limits.h"
#include "base/json.h"
#include "base/stopwatch.h"
#include "io/file.h"
#include "shard/columns.h"
#include "shard/writer.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::shard;

namespace {

/// What a part wrote, and the bytes of its tar.
struct WrittenShard {
  explicit WrittenShard(const TemporaryFolder& folder) {
    Writer writer(folder / "a.tar");
    writer.add(Sample{"k", {{"txt", "text"}}});
    record = writer.finish();
    bytes = io::read_file(folder / "a.tar");
  }
  io::Record of_part() const {
    Json of = record;
    of["place"] = 3;
    return {"shard", of, "a record"};
  }
  Json record;
  std::string bytes;
};

/// Returns the cause of what `act` throws.
template <class Act>
Cause cause_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error.cause();
  }
  FAIL("no error");
  return Cause::other;
}

}  // namespace

TEST_CASE("a shard of a part is awaited, until it has its size and its hash") {
  const TemporaryFolder folder;
  const WrittenShard shard(folder);
  std::string other = shard.bytes;
  other[600] = 'x';
  for (const std::string& before : {shard.bytes.substr(0, 100), other}) {
    folder.write("a.tar", before);
    std::thread host([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      folder.write("a.tar", shard.bytes);
    });
    const Stopwatch watch;
    io::Record record = shard.of_part();
    complete_shard(record);
    CHECK(record.json->at("columns").at("clip") == folder / "a.tar");
    check_shard_bytes(record);
    CHECK(watch.seconds() > 0.2);
    host.join();
  }
}

TEST_CASE("a shard of a part that does not come is a fault that may pass, a damaged one is not") {
  const TemporaryFolder folder;
  const WrittenShard shard(folder);
  const InputLimits before = input_limits();
  InputLimits limits = before;
  limits.timeout = 0.3;
  set_input_limits(limits);
  folder.write("a.tar", shard.bytes.substr(0, 100));
  io::Record record = shard.of_part();
  CHECK(cause_of([&] { complete_shard(record); }) == Cause::disk);
  CHECK(cause_of([&] { check_shard_bytes(record); }) == Cause::disk);
  // A record of nothing but a tar does not say that another host writes it.
  io::Record alone{"shard", shard.record, "a record"};
  complete_shard(alone);
  CHECK(cause_of([&] { check_shard_bytes(alone); }) == Cause::format);
  set_input_limits(before);
}
