// A full disk: every later output would fail, too, so it ends the run (base/run_end.h) instead of
// one item. Thread-safe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace vfm {

/// Throws for an output that could not be written, made, or renamed: Error "<message>: <text of
/// err>". If space or quota has run out, or the file system is read-only: Stopped, after end_run().
/// If the reader has gone, which may be a stop (note_closed_pipe()): Stopped.
[[noreturn]] void throw_output_error(int err, const std::string& message);

template <class... Args>
[[noreturn]] void fail_output(int err, FormatString<Args...> pattern, Args&&... args) {
  throw_output_error(err, vfm::format(pattern, std::forward<Args>(args)...));
}

}  // namespace vfm
