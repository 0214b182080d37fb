// What ends a job of columns, and what is one shard's own fault.
// SPDX-License-Identifier: Apache-2.0
#include "columns/column_job.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"
#include "support/temporary_folder.h"
#include "tensor/device.h"

using namespace vfm;
using namespace vfm::columns;

TEST_CASE("a shard that fails is recorded, a GPU that fails ends the run") {
  const TemporaryFolder folder;
  std::vector<std::string> tars;
  for (const char* name : {"a", "b"}) {
    shard::Writer writer(folder.path + "/" + name + ".tar");
    writer.add(shard::Sample{"k", {{"txt", name}}});
    writer.finish();
    tars.push_back(writer.path());
  }
  const int fd = ::open("/dev/null", O_WRONLY);
  io::ManifestWriter manifest(fd);
  share::Slots slots(1);
  ColumnJob job;
  job.tool = "vfm-test";
  job.column = "test";
  job.settings = [](const io::Record&) { return Json::object(); };
  int filled = 0;
  const auto run = [&](auto failure) {
    filled = 0;
    job.fill = [&, failure](const io::Record&, shard::JoinedReader&, shard::Writer&, ColumnNotes&) {
      ++filled;
      failure();
    };
    return run_column_job(job, tars, slots, manifest);
  };
  CHECK(run([] { fail("its vectors are no numbers"); }) == 2);
  CHECK(filled == 2);
  CHECK_THROWS_AS(run([] { throw GpuError("cannot copy: unspecified launch failure"); }), GpuError);
  CHECK(filled == 1);
  ::close(fd);
}
