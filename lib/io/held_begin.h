// Delays the begin record of a tool's output (io/streams.h). A program has one begin record.
//
// The begin record is written before the tool waits for input, before another record, or when the
// run fails. If a usage error ends the run earlier, no begin record is written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// Stores the begin record `line` for the descriptor `fd`.
void hold_begin(int fd, std::string line);
/// Writes the stored line, if any. Throws Error if writing fails. Thread-safe.
void write_held_begin();

}  // namespace vfm::io
