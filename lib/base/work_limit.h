// What decoding a source may take in all: a small file may else keep a machine busy for hours.
//
// One limit for the whole program, as base/input_limits.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace vfm {

/// Pixels of all pictures, and seconds of a processor.
struct DecodingWork {
  double pixels = 0, seconds = 0;
};

/// For each MiB of a file, to which an eighth of one is added, as a small file may have a little;
/// 0: any. A picture of 1920 x 1080 for each 63 bytes is far above real videos, and a processor
/// decodes 16 KiB of these in much less than a second.
inline constexpr DecodingWork kUsualWork{0x1p35, 64};

/// Before threads start. Programs that set nothing have kUsualWork.
void set_work_limit(DecodingWork for_each_mib);
DecodingWork work_limit();

/// "32G,64s": pixels, in which K, M, G and T are powers of 1024, and time. Throws Error{usage}.
DecodingWork parse_work(const std::string& text);
/// The most that decoding a file of so many bytes may take; 0: nobody knows how many it has.
DecodingWork most_work(std::uint64_t bytes);
/// Throws Error for more: {limit} for pixels, {timeout} for seconds, as there may be fewer of these
/// another time. `name`: the file, for the message.
void check_work(const std::string& name, DecodingWork done, std::uint64_t bytes);

}  // namespace vfm
