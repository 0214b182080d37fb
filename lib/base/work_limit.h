// Limits on the total work of decoding a source: else a small file may keep a machine busy for
// hours.
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

/// The limit for each MiB of a file; an eighth of it is added for small files; 0: none. A picture
/// of 1920 x 1080 for each 63 bytes is far above real videos, and a processor decodes 16 KiB of
/// these in much less than a second.
inline constexpr DecodingWork kUsualWork{0x1p35, 64};

/// To be called before threads start. The default is kUsualWork.
void set_work_limit(DecodingWork for_each_mib);
DecodingWork work_limit();

/// "32G,64s": pixels, in which K, M, G and T are powers of 1024, and time. Throws Error{usage}.
DecodingWork parse_work(const std::string& text);
/// Most work that decoding a file of `bytes` may take. `bytes` 0: unknown size.
DecodingWork most_work(std::uint64_t bytes);
/// Throws Error for more: {limit} for pixels, {timeout} for seconds, since these may be fewer
/// another time. `name`: the file, for the message.
void check_work(const std::string& name, DecodingWork done, std::uint64_t bytes);

}  // namespace vfm
