// SPDX-License-Identifier: Apache-2.0
#include "train/report/tensorboard.h"

#include <catch2/catch.hpp>

#include "io/atomic_file.h"
#include "support/temporary_folder.h"
#include "train/report/metrics.h"

using namespace vfm;
using namespace vfm::train;

TEST_CASE("tensorboard: CRC-32C has its published check values") {
  // RFC 3720, appendix B.4; and the usual check string.
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
}

TEST_CASE("tensorboard: a record is length, checksum, data, checksum") {
  const std::string record = make_tfrecord("hello");
  REQUIRE(record.size() == 8 + 4 + 5 + 4);
  CHECK(record.substr(0, 8) == std::string("\x05\0\0\0\0\0\0\0", 8));
  CHECK(record.substr(12, 5) == "hello");
}

TEST_CASE("metrics: on resume the log is cut behind the checkpoint's step, and torn lines go") {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  io::write_file(path, "{\"step\":1}\n{\"step\":2,\"loss\":0.5}\n{\"step\":3}\n{\"st");
  truncate_log(path, 2);
  CHECK(io::read_file(path) == "{\"step\":1}\n{\"step\":2,\"loss\":0.5}\n");
  truncate_log(path, 0);
  CHECK(io::read_file(path).empty());
  io::write_file(path, "{\"step\":1}\n{\"step\":2");
  truncate_log(path, 9);
  CHECK(io::read_file(path) == "{\"step\":1}\n");
  truncate_log(folder / "absent", 5);
  CHECK_FALSE(io::file_exists(folder / "absent"));
}
