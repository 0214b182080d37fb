// Delays the begin record of a tool's output (io/streams.h) until options, models and devices are
// checked. If a tool fails earlier, standard output is empty. A program has one begin record.
//
// The begin record is written before the wait for input, before the first record or the end record,
// or when the run fails.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// Stores the begin record `line` for the descriptor `fd`.
void hold_begin(int fd, std::string line);
/// Writes the stored line, if any. Throws Error if writing fails. Thread-safe.
void write_held_begin();

}  // namespace vfm::io
