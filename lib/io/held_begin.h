// The record that begins a tool's output is held back until it is known that what was asked for can
// be done: options, models and devices are right, and input is read from here on. A tool that finds
// otherwise leaves its standard output empty, and the reader of a pipe has no input. A program
// begins one stream.
//
// It is written before the first input is waited for, whoever reads it (io/input_lines.h), so that
// a reader knows a tool that was killed then from one that is done; else before the first record
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
