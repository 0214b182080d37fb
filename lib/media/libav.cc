// SPDX-License-Identifier: Apache-2.0
#include "media/libav.h"

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/input_limits.h"
#include "base/log.h"
#include "media/decode/codec_watch.h"

namespace vfm::media {
namespace {

thread_local std::string t_last_error;
thread_local std::vector<int> t_outside;
thread_local std::string t_refused_protocol;
thread_local PixelSize t_oversize, t_impossible;

// A codec's threads log with copies of its context, which keep `opaque` (a CodecWatch or null).
// FFmpeg's check of sizes logs with a class of its own, whose parent is the codec.
CodecWatch* watch_of(void* source) {
  for (int i = 0; i < 2 && source; ++i) {
    const AVClass* type = *static_cast<AVClass**>(source);
    if (!type) return nullptr;
    if (type == avcodec_get_class())
      return static_cast<CodecWatch*>(static_cast<AVCodecContext*>(source)->opaque);
    if (!type->parent_log_context_offset) return nullptr;
    source =
        *reinterpret_cast<void**>(static_cast<char*>(source) + type->parent_log_context_offset);
  }
  return nullptr;
}

void count_error(void* source) {
  const AVClass* type = source ? *static_cast<AVClass**>(source) : nullptr;
  if (!type || type != avcodec_get_class()) return;
  if (CodecWatch* watch = watch_of(source)) ++watch->errors;
}

// FFmpeg calls about 268 million pixels and more an invalid size, whatever max_pixels is. For
// formats with wide samples its limit is lower.
void note_oversize(void* source, const char* format, va_list arguments) {
  constexpr std::string_view kTooLarge = "Picture size %ux%u exceeds specified max pixel count";
  constexpr std::string_view kImpossible = "Picture size %ux%u is invalid";
  const bool impossible = std::string_view(format).starts_with(kImpossible);
  if (!impossible && !std::string_view(format).starts_with(kTooLarge)) return;
  va_list copy;
  va_copy(copy, arguments);
  const std::uint64_t width = va_arg(copy, unsigned), height = va_arg(copy, unsigned);
  va_end(copy);
  if (CodecWatch* watch = watch_of(source))
    (impossible ? watch->impossible : watch->oversize) = width << 32 | height;
  else
    (impossible ? t_impossible : t_oversize) = {static_cast<std::int64_t>(width),
                                                static_cast<std::int64_t>(height)};
}

// FFmpeg reports a QuickTime data reference that it did not follow only in its log.
void note_outside_stream(const char* format, va_list arguments) {
  constexpr std::string_view kSkipped = "Skipped opening external track: stream %d";
  if (!std::string_view(format).starts_with(kSkipped)) return;
  va_list copy;
  va_copy(copy, arguments);
  t_outside.push_back(va_arg(copy, int));
  va_end(copy);
}

// FFmpeg names the protocol of a refused playlist entry only in its log.
void note_refused_protocol(const char* format, va_list arguments) {
  if (!std::string_view(format).starts_with("Protocol '%s' not on whitelist")) return;
  va_list copy;
  va_copy(copy, arguments);
  t_refused_protocol = va_arg(copy, const char*);
  va_end(copy);
}

// A picture of 8 bytes a pixel suffices. A hostile header may ask for more, such as an mp4 that
// claims a thousand million frames.
std::uint64_t max_alloc() {
  constexpr std::uint64_t kLeast = std::uint64_t{96} << 20;
  constexpr std::uint64_t kMost = std::numeric_limits<int>::max();  // FFmpeg's own limit.
  return std::clamp(8 * input_limits().max_pixels + (kLeast >> 2), kLeast, kMost);
}

// FFmpeg logs a line in pieces. If a piece has no '\n', the thread's next piece continues it.
void on_log(void* source, int level, const char* format, va_list arguments) {
  // FFmpeg logs repaired pictures only as information.
  if (level <= AV_LOG_ERROR || std::strncmp(format, "concealing", 10) == 0) count_error(source);
  note_outside_stream(format, arguments);
  note_refused_protocol(format, arguments);
  note_oversize(source, format, arguments);
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
    // In "[mov,mp4 @ 0x55d0] moov atom not found", the part in brackets is not part of the message.
    const auto end = line.rfind("] ");
    t_last_error = end == std::string::npos ? line : line.substr(end + 2);
  }
  if (wanted) log_debug("ffmpeg: {}", line);
  line.clear();
}

}  // namespace

void init_libav() {
  static std::once_flag once;
  std::call_once(once, [] {
    av_log_set_callback(on_log);
    av_max_alloc(max_alloc());
  });
}

void watch_codec(AVCodecContext* codec, CodecWatch* watch) {
  codec->opaque = watch;
}

PixelSize take_oversize() {
  return std::exchange(t_oversize, {});
}

PixelSize take_impossible() {
  return std::exchange(t_impossible, {});
}

std::vector<int> take_outside_streams() {
  return std::exchange(t_outside, {});
}

std::string take_refused_protocol() {
  return std::exchange(t_refused_protocol, {});
}

std::int64_t codec_max_pixels() {
  return static_cast<std::int64_t>(2 * input_limits().max_pixels + (1 << 20));
}

bool is_out_of_memory(int error) {
  if (error != AVERROR(ENOMEM)) return false;
  // FFmpeg also gives ENOMEM for allocations over its limit. Memory has run out only if malloc()
  // cannot give as much as the limit.
  void* const probe = std::malloc(max_alloc());
  std::free(probe);
  return !probe;
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

PacketPtr new_packet(std::string_view bytes) {
  PacketPtr packet(not_null(av_packet_alloc()));
  if (av_new_packet(packet.get(), static_cast<int>(bytes.size())) < 0) throw std::bad_alloc();
  std::copy(bytes.begin(), bytes.end(), packet->data);
  return packet;
}

void set_extradata(AVCodecParameters& parameters, std::string_view bytes) {
  auto* copy =
      static_cast<std::uint8_t*>(not_null(av_mallocz(bytes.size() + AV_INPUT_BUFFER_PADDING_SIZE)));
  std::copy(bytes.begin(), bytes.end(), copy);
  av_freep(&parameters.extradata);
  parameters.extradata = copy;
  parameters.extradata_size = static_cast<int>(bytes.size());
}

AVRational to_av(Rational r) {
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  if (r.den <= 0 || r.den > kMax || r.num > kMax || r.num < -kMax)
    fail("time base or rate {}/{} is outside 32 bits", r.num, r.den);
  return {static_cast<int>(r.num), static_cast<int>(r.den)};
}

}  // namespace vfm::media
