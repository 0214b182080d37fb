// SPDX-License-Identifier: Apache-2.0
#include "clip/store/names.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "io/file.h"
#include "io/remote/address.h"

namespace vfm::clip {
namespace {

constexpr std::size_t kLongest = 80;

/// Returns a text such as "00h01m02s500". A container's negative times begin with "m".
std::string time_text(double seconds) {
  const long long ms = std::llround(std::abs(seconds) * 1000);
  return fmt::format("{}{:02}h{:02}m{:02}s{:03}", seconds < 0 && ms > 0 ? "m" : "", ms / 3600000,
                     ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
}

std::string join(const std::string& path, const std::string& rest) {
  const bool url = io::is_url(path) && !io::is_bucket(path);  // Keys have no query.
  std::string stem = io::base_name(url ? path.substr(0, path.find_first_of("?#")) : path);
  if (const std::size_t dot = stem.rfind('.'); dot != std::string::npos && dot > 0)
    stem.resize(dot);
  std::string name;
  for (const char c : stem) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    // Runs of other characters become one '_'. Readers treat names with a leading "__" as metadata.
    if (plain && !(c == '_' && name == "_"))
      name += c;
    else if (name.empty() || name.back() != '_')
      name += '_';
  }
  if (name.empty() || name == "_") name = "video";
  name.resize(std::min(name.size(), kLongest - rest.size()));
  return name + rest;
}

}  // namespace

std::string readable_key(const std::string& path, const Span& span, const std::string& key) {
  return join(path, fmt::format("-{}-{}-{}", time_text(span.begin_seconds()),
                                time_text(span.end_seconds()), key.substr(0, 8)));
}

std::string readable_key(const std::string& path, const std::string& key) {
  return join(path, "-" + key.substr(0, 8));
}

}  // namespace vfm::clip
