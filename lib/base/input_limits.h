// Limits on what an input file may demand: size and number of pictures, time without data, and the
// further files and protocols that it opens.
//
// One set of limits applies to the whole program; every decoder obeys it. The tool sets it from its
// options before threads start; else the defaults apply.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vfm {

struct InputLimits {
  /// Most pixels (width times height) of a picture or frame: 8192 x 8192.
  std::uint64_t max_pixels = std::uint64_t{1} << 26;
  /// Most pictures for each byte of a file, plus a thousand; 0: any number. Every codec and
  /// container needs at least one bit for a picture.
  std::uint64_t pictures_a_byte = 8;
  /// The program gives an input up after so many seconds without data or decoding progress; 0:
  /// never.
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

/// The least isolate_memory other than 0. With less, a process cannot be confined or decodes
/// nothing.
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
/// Throws Error if `pictures` is more than most_pictures(bytes).
void check_pictures(const std::string& name, std::int64_t pictures, std::uint64_t bytes);

}  // namespace vfm
