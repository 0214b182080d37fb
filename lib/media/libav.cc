// SPDX-License-Identifier: Apache-2.0
#include "media/libav.h"

#include <cstdarg>
#include <cstring>
#include <limits>
#include <mutex>

#include "base/error.h"
#include "base/log.h"

namespace vfm::media {
namespace {

thread_local std::string t_last_error;

// A codec's threads log with copies of its context, which keep `opaque`: our counter, or null.
void count_error(void* source) {
  const AVClass* type = source ? *static_cast<AVClass**>(source) : nullptr;
  if (!type || type != avcodec_get_class()) return;
  auto* count =
      static_cast<std::atomic<std::int64_t>*>(static_cast<AVCodecContext*>(source)->opaque);
  if (count) ++*count;
}

// FFmpeg logs a line in pieces; a piece without '\n' is continued by the next on the same thread.
void on_log(void* source, int level, const char* format, va_list arguments) {
  // Repaired pictures are announced only as information.
  if (level <= AV_LOG_ERROR || std::strncmp(format, "concealing", 10) == 0) count_error(source);
  const bool wanted = log_level() >= LogLevel::debug && level <= AV_LOG_INFO;
  if (level > AV_LOG_ERROR && !wanted) return;
  thread_local int print_prefix = 1;
  thread_local std::string line;
  char piece[1024];
  av_log_format_line2(source, level, format, arguments, piece, sizeof piece, &print_prefix);
  line += piece;
  if (!line.empty() && line.back() != '\n') return;
  while (!line.empty() && (line.back() == '\n' || line.back() == ' '))
    line.pop_back();
  if (level <= AV_LOG_ERROR) {
    // "[mov,mp4 @ 0x55d0] moov atom not found": an address is no part of a message.
    const auto end = line.rfind("] ");
    t_last_error = end == std::string::npos ? line : line.substr(end + 2);
  }
  if (wanted) log_debug("ffmpeg: {}", line);
  line.clear();
}

}  // namespace

void init_libav() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(on_log); });
}

void watch_errors(AVCodecContext* codec, std::atomic<std::int64_t>* count) {
  codec->opaque = count;
}

void clear_libav_message() {
  t_last_error.clear();
}

bool has_libav_message() {
  return !t_last_error.empty();
}

std::string libav_error_text(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof text);
  if (t_last_error.empty()) return text;
  return fmt::format("{} ({})", text, t_last_error);
}

AVRational to_av(Rational r) {
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  if (r.den <= 0 || r.den > kMax || r.num > kMax || r.num < -kMax)
    fail("time base or rate {}/{} is outside 32 bits", r.num, r.den);
  return {static_cast<int>(r.num), static_cast<int>(r.den)};
}

}  // namespace vfm::media
