// An emulated NCCL (nccl_emulated.cc), whose ranks are threads with a device each (streams.h).
//
// What a rank queues is done when all that it concerns have come to it on their streams, and not
// before. Sums add in the opposite order of the ranks, so that they show whose they are. NCCL's own
// rules are kept: several ranks of a communicator on one device are refused; a send is not
// buffered; a rank that aborts fails what others do with it, which stands still on their streams
// until they abort, too.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::test {

struct EmulatedNccl {
  std::string missing;    ///< why_no_nccl()
  bool apart = false;     ///< the hosts do not reach each other: no communicator is made
  int communicators = 0;  ///< made, ever
  int destroyed = 0, aborted = 0;
};
/// Under the lock of streams.h, while other threads use it.
EmulatedNccl& emulated_nccl();

}  // namespace vfm::test
