// Errors of outputs. A full disk ends the whole run (base/run_end.h), not only one item.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace vfm {

/// Throws Error "<message>: <text of err>" for an output that could not be written, made, or
/// renamed, with Cause::disk. If space or quota has run out, or if the file system is read-only,
/// calls end_run() and throws Stopped. After stop_at_closed_pipes(), also throws Stopped if the
/// output's reader has gone.
[[noreturn]] void throw_output_error(int err, const std::string& message);

template <class... Args>
[[noreturn]] void fail_output(int err, FormatString<Args...> pattern, Args&&... args) {
  throw_output_error(err, vfm::format(pattern, std::forward<Args>(args)...));
}

}  // namespace vfm
