// Limits the total work of decoding one file, since a small file could keep a machine busy for
// hours.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace vfm {

/// Pixels of all pictures, and seconds of processor time.
struct DecodingWork {
  double pixels = 0, seconds = 0;
};

/// The default limit for each MiB of a file; 0: no limit. In addition, a file of any size is
/// allowed an eighth of this limit. kUsualWork allows a picture of 1920 x 1080 for each 63 bytes,
/// and a second for each 16 KiB. Real videos need far less.
inline constexpr DecodingWork kUsualWork{0x1p35, 64};

/// Sets the program's limit. Call it before threads start.
void set_work_limit(DecodingWork for_each_mib);
DecodingWork work_limit();

/// Parses pixels and a time: "32G,64s". K, M, G and T are powers of 1024. Throws Error{usage}.
DecodingWork parse_work(const std::string& text);
/// Returns the limit for decoding a file of `bytes` bytes. `bytes` is 0 if the size is unknown.
DecodingWork most_work(std::uint64_t bytes);
/// Throws Error if `done` exceeds most_work(bytes): Error{limit} for pixels, and Error{timeout} for
/// seconds, since another run may need fewer seconds. The message names the file `name`.
void check_work(const std::string& name, DecodingWork done, std::uint64_t bytes);

}  // namespace vfm
