// SPDX-License-Identifier: Apache-2.0
#include "ops/determinism.h"

#include <atomic>

namespace vfm::ops {
namespace {

std::atomic<bool> on_{false};

}  // namespace

void set_deterministic(bool on) {
  on_ = on;
}

bool deterministic() {
  return on_;
}

}  // namespace vfm::ops
