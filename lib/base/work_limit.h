// Limits the total work of decoding one file. Otherwise a small file could keep a machine busy for
// hours.
//
// One limit applies to the whole program, as in base/input_limits.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace vfm {

/// Pixels of all pictures, and seconds of processor time.
struct DecodingWork {
  double pixels = 0, seconds = 0;
};

/// The limit for each MiB of a file; 0: no limit. Every file is allowed another eighth. The limit
/// allows a picture of 1920 x 1080 for each 63 bytes, and a second for each 16 KiB, far more than
/// real videos need.
inline constexpr DecodingWork kUsualWork{0x1p35, 64};

/// Sets the program's limit. Call it before threads start. The default is kUsualWork.
void set_work_limit(DecodingWork for_each_mib);
DecodingWork work_limit();

/// Parses "32G,64s": pixels, in which K, M, G and T are powers of 1024, and time. Throws
/// Error{usage}.
DecodingWork parse_work(const std::string& text);
/// Returns the most work that decoding a file of `bytes` may take. If `bytes` is 0, the size is
/// unknown.
DecodingWork most_work(std::uint64_t bytes);
/// Throws Error if `done` exceeds most_work(bytes): {limit} for pixels; {timeout} for seconds,
/// since another run may need fewer seconds. `name` is the file, for the message.
void check_work(const std::string& name, DecodingWork done, std::uint64_t bytes);

}  // namespace vfm
