// What an earlier run's receipt vouches for, and what not.
// SPDX-License-Identifier: Apache-2.0
#include "shard/receipt.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/json.h"
#include "base/run_end.h"
#include "base/stop.h"
#include "io/file.h"
#include "support/samples.h"

using namespace vfm;
using namespace vfm::shard;

namespace {
const auto kNoCheck = [](const Json&) {};
}

TEST_CASE("a receipt holds for what it was made from, and while its check passes") {
  const TemporaryFolder dir;
  const std::string path = dir / "new/a.json";
  const Json made_from = {{"size", 64}};
  Receipt receipt(path, "made_from", made_from);
  CHECK(receipt.find(kNoCheck).is_null());
  CHECK(receipt.find_or_hold(kNoCheck, false).is_null());
  receipt.write(R"({"made_from":{"size":64},"more":1})");
  CHECK(receipt.find(kNoCheck).at("more") == 1);
  CHECK(receipt.find_or_hold(kNoCheck, false).at("more") == 1);
  CHECK(receipt.find([](const Json&) { fail("it has changed"); }).is_null());
  CHECK(receipt.find([](const Json& json) { json.at("less"); }).is_null());
  CHECK(Receipt(path, "made_from", {{"size", 32}}).find(kNoCheck).is_null());
  CHECK(Receipt(path, "plan", made_from).find(kNoCheck).is_null());
  CHECK(receipt.find_or_hold(kNoCheck, true).is_null());
  for (const char* damaged : {"", "{", "[]", "null", "7"}) {
    receipt.write(damaged);
    CHECK(receipt.find(kNoCheck).is_null());
  }
}

TEST_CASE("a stop while a receipt is looked at does not make it worthless") {
  const TemporaryFolder dir;
  Receipt receipt(dir / "a.json", "plan", "x");
  receipt.write(R"({"plan":"x"})");
  CHECK_THROWS_AS(throw_output_error(ENOSPC, "cannot write 'x'"), Stopped);  // stops as signals do
  CHECK_THROWS_AS(receipt.find([](const Json&) { check_stop(); }), Stopped);
  forget_run_end();
}

TEST_CASE("a shard is as it was written if its size and its indexes are") {
  const TemporaryFolder dir;
  const std::string tar = dir / "a.tar";
  const auto write = [&] {
    Writer writer(tar);
    writer.add(make_sample("k", "text"));
    return writer.finish();
  };
  const Json record = write();
  CHECK_NOTHROW(check_written(tar, record));
  CHECK_THROWS_AS(check_written(tar, {{"bytes", 1}}), Error);
  CHECK_THROWS_AS(check_written(tar, Json::object()), Error);
  for (const std::string& file : shard_files(tar)) {
    std::filesystem::remove(file);
    if (file != receipt_path(tar)) CHECK_THROWS_AS(check_written(tar, record), Error);
    if (file == dali_index_path(tar))
      CHECK_NOTHROW(check_written(tar, record, {.energon_index = true, .dali_index = false}));
    write();
  }
  for (const std::string& index : {energon_index_path(tar), dali_index_path(tar)}) {
    std::filesystem::resize_file(index, 0);
    CHECK_THROWS_AS(check_written(tar, record), Error);
    write();
    CHECK_NOTHROW(check_written(tar, record));
  }
  Json more = record;
  more["samples"] = 2;
  CHECK_THROWS_AS(check_written(tar, more), Error);
}

TEST_CASE("samples that were refused are asked for again under another limit") {
  const ReadLimits limits{.member = 100};
  CHECK_NOTHROW(check_limit({{"max_member", 100}}, limits));
  CHECK_NOTHROW(check_limit({{"max_member", nullptr}}, limits));
  CHECK_NOTHROW(check_limit(Json::object(), limits));
  CHECK_THROWS_AS(check_limit({{"max_member", 99}}, limits), Error);
}
