// SPDX-License-Identifier: Apache-2.0
#include "base/work_limit.h"

#include <limits>
#include <string_view>

#include "base/error.h"
#include "base/units.h"

namespace vfm {
namespace {
DecodingWork g_work = kUsualWork;
}

void set_work_limit(DecodingWork for_each_mib) {
  g_work = for_each_mib;
}

DecodingWork work_limit() {
  return g_work;
}

DecodingWork parse_work(const std::string& text) {
  const std::size_t comma = text.find(',');
  try {
    if (comma == std::string::npos) fail_usage("there is no comma");
    const std::uint64_t pixels = parse_bytes(std::string_view(text).substr(0, comma));
    return {static_cast<double>(pixels), parse_seconds(std::string_view(text).substr(comma + 1))};
  } catch (const Error&) {
    fail_usage("'{}' is not a number of pixels and a time; write it like 32G,64s", text);
  }
}

DecodingWork most_work(std::uint64_t bytes) {
  constexpr double kMiB = 0x1p20, kAdded = kMiB / 8, kAny = std::numeric_limits<double>::max();
  const auto all = [&](double each) {
    return bytes == 0 || each <= 0 ? kAny : each * (static_cast<double>(bytes) + kAdded) / kMiB;
  };
  return {all(g_work.pixels), all(g_work.seconds)};
}

void check_work(const std::string& name, DecodingWork done, std::uint64_t bytes) {
  const DecodingWork most = most_work(bytes);
  if (done.pixels > most.pixels)
    fail_as(Cause::limit,
            "'{}' has more than {:.0f} pixels in all its pictures, which is more than --max-work "
            "allows for {} bytes; raise it to use it",
            name, most.pixels, bytes);
  if (done.seconds > most.seconds)
    fail_as(Cause::timeout,
            "'{}' takes a processor more than {} to decode, which is more than --max-work allows "
            "for {} bytes; raise it to use it",
            name, format_seconds(most.seconds), bytes);
}

}  // namespace vfm
