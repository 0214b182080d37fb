// Delays the begin record of a tool's output (io/streams.h) until options, models and devices are
// checked and input is about to be read. If a tool fails earlier, its standard output stays empty.
// A program has one begin record.
//
// The begin record is written at the first of these moments: before the wait for the first input
// (io/input_lines.h), before the first record or the end (io/manifest.h), when the run fails
// (cli/runner.cc). So a reader can tell a killed tool from a finished one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// Keeps the begin record `line` for the descriptor `fd`.
void hold_begin(int fd, std::string line);
/// Writes the kept line, if there is one. Throws Error if that fails. Thread-safe.
void write_held_begin();

}  // namespace vfm::io
