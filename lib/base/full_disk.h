// A disk without room: the one failure of an output that every output after it shares.
//
// It is no item's fault, so it ends the run as a signal does, instead of wasting the work on every
// later item: from then on check_stop() (base/stop.h) throws Stopped in every thread, which nothing
// records or skips, and cli/ prints the message kept here. Thread-safe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace vfm {

/// Whether an output of this program found no room, and the message about the first that did.
bool disk_is_full() noexcept;
std::string full_disk_message();
/// For tests.
void forget_full_disk();

/// Throws for an output that could not be written, made, or renamed: Error "<message>: <text of
/// err>"; but where there is no space or quota left, or the file system is read-only, Stopped.
[[noreturn]] void throw_output_error(int err, const std::string& message);

template <class... Args>
[[noreturn]] void fail_output(int err, FormatString<Args...> pattern, Args&&... args) {
  throw_output_error(err, vfm::format(pattern, std::forward<Args>(args)...));
}

}  // namespace vfm
