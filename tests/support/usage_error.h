// What a call that must be refused says, for tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "base/error.h"

namespace vfm {

/// The message of the Error{usage} that `act` throws.
template <class Act>
std::string usage_error(Act act) {
  try {
    act();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what();
  }
  FAIL_CHECK("nothing was refused");
  return {};
}

}  // namespace vfm
