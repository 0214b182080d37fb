// SPDX-License-Identifier: Apache-2.0
#include "base/left_behind.h"

#include <atomic>

#include "base/format.h"
#include "base/run_end.h"

namespace vfm {
namespace {
std::atomic<int> g_left{0}, g_on_disk{0};
}

void count_left_behind() {
  if (++g_left <= kMostLeftBehind) return;
  end_run(
      vfm::format("more than {} decodings hang, which this program can neither end nor carry on "
                  "with; with --isolate, in programs that have it, each ends alone",
                  kMostLeftBehind));
}

void count_returned() noexcept {
  --g_left;
}

int left_behind() noexcept {
  return g_left;
}

void count_left_on_disk() noexcept {
  ++g_on_disk;
}

int left_on_disk() noexcept {
  return g_on_disk;
}

}  // namespace vfm
