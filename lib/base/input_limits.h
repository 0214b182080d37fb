// Limits on what an input file may demand: the size and number of its pictures, its server's
// silence, and the further files and protocols that it opens.
//
// One set holds for the whole program; every decoder reads it. The tool sets it from its options
// before threads start; else the defaults hold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vfm {

struct InputLimits {
  /// Width times height of a picture, or of a frame of a video: 8192 x 8192.
  std::uint64_t max_pixels = std::uint64_t{1} << 26;
  /// Pictures for each byte of a file, beside a thousand; 0: any number. Every codec and container
  /// needs at least a bit for one; a file whose index repeats the same bytes, or a decoder taken
  /// over, might give them for ever.
  std::uint64_t pictures_a_byte = 8;
  /// Seconds without data or decoding progress after which the program gives an input up; 0: never.
  double timeout = 60;
  /// Decodes each file in a process of its own (media/isolate/isolated.h), of at most
  /// `isolate_memory` bytes; 0: any number.
  bool isolate = false;
  std::uint64_t isolate_memory = std::uint64_t{4} << 30;
  /// Allowed playlists, scripts and protocols, by FFmpeg's names ("hls", "https"). Empty: a file
  /// may read only itself, a URL only its own address.
  std::vector<std::string> protocols;

  bool allows(const std::string& protocol) const;
};

/// The least isolate_memory other than 0; with less a process is not confined or decodes nothing.
inline constexpr std::uint64_t kLeastIsolateMemory = std::uint64_t{16} << 20;

/// To be called before threads start.
void set_input_limits(const InputLimits& limits);
const InputLimits& input_limits();

/// "67108864", "64M" or "8192x8192". Throws Error{usage}.
std::uint64_t parse_pixels(const std::string& text);
/// Throws Error{usage} for an unknown name.
void check_protocol(const std::string& name);
/// Throws Error unless a picture of this size may be decoded. `name`: the file, for the message.
void check_pixels(const std::string& name, std::int64_t width, std::int64_t height);
/// Most pictures that a file of `bytes` may give. `bytes` 0: unknown size.
std::int64_t most_pictures(std::uint64_t bytes);
/// Throws Error for more.
void check_pictures(const std::string& name, std::int64_t pictures, std::uint64_t bytes);

}  // namespace vfm
