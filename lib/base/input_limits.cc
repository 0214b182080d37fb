// SPDX-License-Identifier: Apache-2.0
#include "base/input_limits.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "base/units.h"

namespace vfm {
namespace {

InputLimits g_limits;
bool g_chosen = false;  // By options. Programs without them cannot raise a limit.

constexpr std::string_view kProtocols[] = {
    "concat", "crypto", "dash", "data", "dref", "file", "ftp",   "hls", "http",
    "https",  "imf",    "mmsh", "mmst", "rist", "rtmp", "rtmps", "rtp", "rtsp",
    "sap",    "sctp",   "sdp",  "sftp", "srt",  "srtp", "tcp",   "tls", "udp"};

bool parse_whole(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

bool InputLimits::allows(const std::string& protocol) const {
  return std::find(protocols.begin(), protocols.end(), protocol) != protocols.end();
}

void set_input_limits(const InputLimits& limits) {
  g_chosen = true;
  g_limits = limits;
}

const InputLimits& input_limits() {
  return g_limits;
}

std::uint64_t parse_pixels(const std::string& text) {
  std::uint64_t width = 0, height = 1;
  const std::size_t cross = text.find('x');
  bool good = parse_whole(std::string_view(text).substr(0, cross), width);
  if (cross != std::string::npos)
    good = good && parse_whole(std::string_view(text).substr(cross + 1), height);
  else if (!good && text.ends_with('M'))
    good = parse_whole(std::string_view(text).substr(0, text.size() - 1), width), height = 1 << 20;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;  // FFmpeg's limit.
  if (!good || width == 0 || height == 0 || width > kMost || height > kMost ||
      width * height > kMost)
    fail_usage("'{}' is not a number of pixels; write it like 64M or 8192x8192, at most 2048M",
               text);
  return width * height;
}

void check_protocol(const std::string& name) {
  if (std::find(std::begin(kProtocols), std::end(kProtocols), name) != std::end(kProtocols)) return;
  std::string known;
  for (const std::string_view protocol : kProtocols)
    known += (known.empty() ? "" : ", ") + std::string(protocol);
  fail_usage("'{}' is not a protocol or playlist that can be allowed (known: {})", name, known);
}

void check_pixels(const std::string& name, std::int64_t width, std::int64_t height) {
  if (width <= 0 || height <= 0 ||
      static_cast<double>(width) * static_cast<double>(height) <=
          static_cast<double>(g_limits.max_pixels))
    return;
  if (!g_chosen)
    fail_as(Cause::limit, "'{}' has pictures of {}x{}, more pixels than {}: make them smaller",
            name, width, height, g_limits.max_pixels);
  fail_as(
      Cause::limit,
      "'{}' has pictures of {}x{}, more pixels than --max-pixels allows ({}); raise it to use it",
      name, width, height, g_limits.max_pixels);
}

std::int64_t most_pictures(std::uint64_t bytes) {
  constexpr std::int64_t kAnyFile = 1000, kAll = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t each = g_limits.pictures_a_byte;
  if (bytes == 0 || each == 0 || bytes > static_cast<std::uint64_t>(kAll - kAnyFile) / each)
    return kAll;
  return kAnyFile + static_cast<std::int64_t>(bytes * each);
}

void check_pictures(const std::string& name, std::int64_t pictures, std::uint64_t bytes) {
  if (pictures <= most_pictures(bytes)) return;
  fail_as(Cause::limit, "'{}' gives more pictures than its {} bytes can hold; it is not used", name,
          bytes);
}

}  // namespace vfm
