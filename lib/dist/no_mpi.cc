// In the place of mpi.cc where MPI is not installed.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "dist/world.h"

namespace vfm::dist {

std::unique_ptr<World> mpi_world(double) {
  fail(
      "this program was built without MPI, so it trains in one process: start it without mpirun, "
      "or "
      "build it with -Dmpi=enabled");
}

bool has_mpi() {
  return false;
}

}  // namespace vfm::dist
