// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <charconv>
#include <cmath>
#include <iterator>

#include "base/error.h"

namespace vfm {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

double parse_with_unit(std::string_view text, const Unit* units, std::size_t count,
                       std::string_view example) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0)
    fail_usage("'{}' is not a size or time; write it like {}", text, example);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (std::size_t i = 0; i < count; ++i)
    if (units[i].name == unit) return value * units[i].factor;
  fail_usage("'{}' has an unknown unit '{}'; write it like {}", text, unit, example);
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
  static constexpr Unit units[] = {{"", 1},       {"B", 1},        {"K", 0x1p10},   {"KiB", 0x1p10},
                                   {"kB", 1e3},   {"KB", 1e3},     {"M", 0x1p20},   {"MiB", 0x1p20},
                                   {"MB", 1e6},   {"G", 0x1p30},   {"GiB", 0x1p30}, {"GB", 1e9},
                                   {"T", 0x1p40}, {"TiB", 0x1p40}, {"TB", 1e12}};
  const double bytes = parse_with_unit(text, units, std::size(units), "64MiB or 1GB");
  if (bytes > 0x1p62) fail_usage("'{}' is more bytes than a file can hold", text);
  return static_cast<std::uint64_t>(bytes);
}

double parse_seconds(std::string_view text) {
  static constexpr Unit units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
  return parse_with_unit(text, units, std::size(units), "2s, 500ms or 1m");
}

std::string format_bytes(double bytes) {
  static constexpr std::string_view names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t i = 0;
  while (bytes >= 1024 && i + 1 < std::size(names))
    bytes /= 1024, ++i;
  return i == 0 ? vfm::format("{:.0f} B", bytes) : vfm::format("{:.1f} {}", bytes, names[i]);
}

std::string format_seconds(double seconds) {
  if (seconds < 60) return vfm::format("{:.1f}s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 3600) return vfm::format("{}m{:02}s", whole / 60, whole % 60);
  return vfm::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

std::string format_count(double count) {
  static constexpr std::string_view names[] = {"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
  std::size_t i = 0;
  while (std::abs(count) >= 999.5 && i + 1 < std::size(names))
    count /= 1000, ++i;
  if (i == 0 && count == std::floor(count)) return vfm::format("{:.0f}", count);
  return vfm::format("{:.3g}{}", count, names[i]);
}

}  // namespace vfm
