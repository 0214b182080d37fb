// Parses and writes numbers with units, for options and messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vfm {

/// Parses bytes: "512", "64KiB", "1GiB", "500MB" (decimal), "2G" (binary, as in dd). Throws
/// Error{usage}.
std::uint64_t parse_bytes(std::string_view text);
/// Parses seconds, at least 0: "2", "2s", "500ms", "1.5m", "1h". Throws Error{usage}.
double parse_seconds(std::string_view text);

/// Returns bytes as text: "1.5 GiB" or "312 B".
std::string format_bytes(double bytes);
/// Returns seconds as text: "1h02m", "3m20s" or "12.5s".
std::string format_seconds(double seconds);
/// Returns a count with three digits and a decimal prefix: "12.3k", "4.56M".
std::string format_count(double count);

}  // namespace vfm
