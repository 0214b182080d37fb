// SPDX-License-Identifier: Apache-2.0
#include "base/left_behind.h"

#include <atomic>

namespace vfm {
namespace {
std::atomic<int> g_left{0};
}

void count_left_behind(int by) noexcept {
  g_left += by;
}

int left_behind() noexcept {
  return g_left;
}

}  // namespace vfm
