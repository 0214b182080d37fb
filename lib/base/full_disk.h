// Errors of outputs. A full disk ends the whole run (base/run_end.h), not only one item.
// Thread-safe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace vfm {

/// Call it if an output could not be written, made, or renamed. Throws Error "<message>: <text of
/// err>". If space or quota has run out, or the file system is read-only, calls end_run() and
/// throws Stopped. Throws Stopped also if the output's reader has gone, after a call of
/// stop_at_closed_pipes().
[[noreturn]] void throw_output_error(int err, const std::string& message);

template <class... Args>
[[noreturn]] void fail_output(int err, FormatString<Args...> pattern, Args&&... args) {
  throw_output_error(err, vfm::format(pattern, std::forward<Args>(args)...));
}

}  // namespace vfm
