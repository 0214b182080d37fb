// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <atomic>

namespace vfm {
namespace {
std::atomic<LogSink> g_sink{nullptr};
std::atomic<LogLevel> g_level{LogLevel::warning};
}  // namespace

void set_log_sink(LogSink sink, LogLevel level) {
  g_sink = sink;
  g_level = level;
}

LogLevel log_level() {
  return g_level;
}

void log_message(LogLevel level, std::string_view message) {
  if (LogSink sink = g_sink; sink && level <= g_level) sink(level, message);
}

}  // namespace vfm
