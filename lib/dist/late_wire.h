// Inside lib/dist only: a wire that delays messages, to measure how much communication computing
// hides (tests/bench/overlap.sh).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "dist/wire.h"

namespace vfm::dist {

/// Returns `wire` with each message delayed at both ends by `seconds` after its arrival.
std::unique_ptr<Wire> late_wire(std::unique_ptr<Wire> wire, double seconds);

}  // namespace vfm::dist
