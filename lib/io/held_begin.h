// Delays the begin record of a tool's output (io/streams.h) until options, models and devices are
// checked. If a tool fails earlier, standard output is empty. A program has one begin record.
//
// The begin record is written at the first of these moments: before the wait for input
// (io/input_lines.h), before the first record or the end record (io/manifest.h), or when the run
// fails (cli/runner.cc).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// Stores the begin record `line` for the descriptor `fd`.
void hold_begin(int fd, std::string line);
/// Writes the stored line, if any. Throws Error if writing fails. Thread-safe.
void write_held_begin();

}  // namespace vfm::io
