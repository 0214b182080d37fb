// The library that groups of GPUs use is there, and has all functions that are called.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstring>

#include "dist/device_carrier.h"
#include "dist/nccl_library_cuda.h"

using namespace vfm::dist;

TEST_CASE("nccl: the library opens, and is of the header's generation") {
  CHECK(why_no_nccl().empty());
  const nccl::Library& library = nccl::library();
  int version = 0;
  REQUIRE(library.GetVersion(&version) == ncclSuccess);
  CHECK(version / 10000 == NCCL_MAJOR);
  CHECK(std::strlen(library.GetErrorString(ncclRemoteError)) > 0);
  // As to a communicator that is none.
  CHECK(library.CommGetAsyncError(nullptr, nullptr) != ncclSuccess);
}
