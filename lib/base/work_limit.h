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

/// The limit for each MiB of a file; every file is allowed another eighth of this; 0: no limit. It
/// allows a picture of 1920 x 1080 for each 63 bytes, and a second for each 16 KiB, far more than
/// real videos need.
inline constexpr DecodingWork kUsualWork{0x1p35, 64};

/// To be called before threads start. The default is kUsualWork.
void set_work_limit(DecodingWork for_each_mib);
DecodingWork work_limit();

/// "32G,64s": pixels, in which K, M, G and T are powers of 1024, and time. Throws Error{usage}.
DecodingWork parse_work(const std::string& text);
/// The most work that decoding a file of `bytes` may take. `bytes` 0: unknown size.
DecodingWork most_work(std::uint64_t bytes);
/// Throws Error if `done` exceeds most_work(bytes): {limit} for pixels; {timeout} for seconds,
/// since another run may need fewer. `name`: the file, for the message.
void check_work(const std::string& name, DecodingWork done, std::uint64_t bytes);

}  // namespace vfm
