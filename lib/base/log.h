// Log messages of the library, for people.
//
// The library does not print. cli/ sets one sink at start, which writes messages to stderr. Without
// a sink, messages are dropped.
// Thread-safety: set_log_sink() before threads start; the other functions from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>

#include "base/format.h"

namespace vfm {

/// Importance of a message. -q shows errors only, the default also warnings, -v also info, and -vv
/// also debug.
enum class LogLevel { error = 0, warning = 1, info = 2, debug = 3 };

using LogSink = void (*)(LogLevel level, std::string_view message);

/// Sets the sink, and the least important level that the sink gets.
void set_log_sink(LogSink sink, LogLevel level);
LogLevel log_level();
void log_message(LogLevel level, std::string_view message);

template <class... Args>
void log_at(LogLevel level, FormatString<Args...> pattern, Args&&... args) {
  if (level <= log_level()) log_message(level, vfm::format(pattern, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(FormatString<Args...> pattern, Args&&... args) {
  log_at(LogLevel::error, pattern, std::forward<Args>(args)...);
}
template <class... Args>
void log_warning(FormatString<Args...> pattern, Args&&... args) {
  log_at(LogLevel::warning, pattern, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(FormatString<Args...> pattern, Args&&... args) {
  log_at(LogLevel::info, pattern, std::forward<Args>(args)...);
}
template <class... Args>
void log_debug(FormatString<Args...> pattern, Args&&... args) {
  log_at(LogLevel::debug, pattern, std::forward<Args>(args)...);
}

}  // namespace vfm
