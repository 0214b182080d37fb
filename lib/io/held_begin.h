// Holds back the record that begins a tool's output until options, models and devices are checked
// and input is about to be read. A tool that fails earlier leaves its standard output empty, so the
// reader of a pipe has no input. A program begins one stream.
//
// It is written before the wait for the first input (io/input_lines.h), so that a reader can tell a
// killed tool from one that is done; else before the first record
// or the end (io/manifest.h); else when the run fails (cli/runner.cc).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// Holds that line back, for this descriptor.
void hold_begin(int fd, std::string line);
/// Writes it, if one is held. Throws Error when it cannot be written. Thread-safe.
void write_held_begin();

}  // namespace vfm::io
