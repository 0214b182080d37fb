// What a file from outside may ask of this machine: how large its pictures may be, and how many,
// how long its server may be silent, and what else it may have opened.
//
// One set for the whole program, which every decoder reads. The tool sets it from its options
// before it starts threads; programs that set nothing have the defaults.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vfm {

struct InputLimits {
  /// Width times height of a picture, or of a frame of a video: 8192 x 8192.
  std::uint64_t max_pixels = std::uint64_t{1} << 26;
  /// Pictures for each byte of a file, beside a thousand; 0: any number. No codec and no container
  /// needs less than a bit for one; a file whose index has the same bytes again and again, or what
  /// took over a decoder, might give them for ever.
  std::uint64_t pictures_a_byte = 8;
  /// Seconds in which nothing may come of an input before the program gives it up: a server sends
  /// nothing, a decoder gets no further; 0: for ever.
  double timeout = 60;
  /// Files are decoded in processes of their own (media/isolated.h), each of which may take so many
  /// bytes of memory; 0: any number.
  bool isolate = false;
  std::uint64_t isolate_memory = std::uint64_t{4} << 30;
  /// Playlists, scripts and protocols that are allowed, by FFmpeg's names ("hls", "https"). Empty:
  /// a file may read only itself, a URL only its own address.
  std::vector<std::string> protocols;

  bool allows(const std::string& protocol) const;
};

/// Below that a process is not confined, or decodes nothing: an isolate_memory is 0 or more.
inline constexpr std::uint64_t kLeastIsolateMemory = std::uint64_t{16} << 20;

/// Before threads start.
void set_input_limits(const InputLimits& limits);
const InputLimits& input_limits();

/// "67108864", "64M" or "8192x8192". Throws Error{usage}.
std::uint64_t parse_pixels(const std::string& text);
/// Throws Error{usage} for a name that is none of the known ones.
void check_protocol(const std::string& name);
/// Throws Error unless a picture of this size may be decoded. `name`: the file, for the message.
void check_pixels(const std::string& name, std::int64_t width, std::int64_t height);
/// The most pictures that a file of so many bytes may give; 0: nobody knows how many it has.
std::int64_t most_pictures(std::uint64_t bytes);
/// Throws Error for more.
void check_pictures(const std::string& name, std::int64_t pictures, std::uint64_t bytes);

}  // namespace vfm
