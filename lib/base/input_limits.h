// Limits on what an input file may demand: size and number of pictures, time without data, and the
// further files and protocols that it opens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vfm {

struct InputLimits {
  /// Largest number of pixels (width times height) of a picture or frame: 8192 x 8192.
  std::uint64_t max_pixels = std::uint64_t{1} << 26;
  /// Largest number of pictures for each byte of a file; 0: no limit. Each file may have a thousand
  /// pictures more.
  std::uint64_t pictures_a_byte = 8;
  /// Seconds without data or decoding progress after which the program gives up an input; 0: no
  /// limit.
  double timeout = 60;
  /// Whether each file is decoded in its own process (media/isolate/isolated.h). The process may
  /// use `isolate_memory` bytes; 0: no limit.
  bool isolate = false;
  std::uint64_t isolate_memory = std::uint64_t{4} << 30;
  /// Allowed playlists, scripts and protocols, by FFmpeg's names ("hls", "https"). If the list is
  /// empty, a file may read only itself, and a URL only its own address.
  std::vector<std::string> protocols;

  bool allows(const std::string& protocol) const;
};

/// The smallest valid isolate_memory other than 0. A process with less memory cannot decode.
inline constexpr std::uint64_t kLeastIsolateMemory = std::uint64_t{16} << 20;

/// Sets the program's limits. Call it before threads start.
void set_input_limits(const InputLimits& limits);
const InputLimits& input_limits();

/// Parses a number of pixels: "67108864", "64M" or "8192x8192". Throws Error{usage}.
std::uint64_t parse_pixels(const std::string& text);
/// Throws Error{usage} if no playlist, script or protocol has this name.
void check_protocol(const std::string& name);
/// Throws Error if a picture of this size must not be decoded. The message names the file `name`.
void check_pixels(const std::string& name, std::int64_t width, std::int64_t height);
/// Returns the limit of pictures for a file of `bytes` bytes. `bytes` is 0 if the size is unknown.
std::int64_t most_pictures(std::uint64_t bytes);
/// Throws Error if `pictures` exceeds most_pictures(bytes).
void check_pictures(const std::string& name, std::int64_t pictures, std::uint64_t bytes);

}  // namespace vfm
