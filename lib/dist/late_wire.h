// Inside lib/dist only: a wire whose messages come late, to measure what is hidden behind
// computing (tests/bench/overlap.sh).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "dist/wire.h"

namespace vfm::dist {

/// `wire`, whose messages land that many seconds after they have arrived, at both ends.
std::unique_ptr<Wire> late_wire(std::unique_ptr<Wire> wire, double seconds);

}  // namespace vfm::dist
