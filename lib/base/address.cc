// SPDX-License-Identifier: Apache-2.0
#include "base/address.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/format.h"
#include "base/input_limits.h"

namespace vfm {

std::string url_scheme(std::string_view name) {
  const std::size_t colon = name.find("://");
  if (colon == 0 || colon == std::string_view::npos) return "";
  std::string scheme(name.substr(0, colon));
  for (char& c : scheme) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '+' && c != '-' && c != '.') return "";
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return scheme;
}

std::string no_file_message(std::string_view name) {
  const std::string scheme = url_scheme(name);
  if (scheme.empty()) return "";
  if (scheme == "file")
    return vfm::format("'{}' is an address; give the path, '{}'", name,
                       name.substr(scheme.size() + 3));
  return vfm::format(
      "'{}' is an address, and vfm has only files and folders of this machine here; copy it, or "
      "mount it",
      name);
}

std::string no_video_message(std::string_view name, std::span<const std::string> protocols) {
  const std::string scheme = url_scheme(name);
  if (scheme.empty() || scheme == "file" || scheme == "http" || scheme == "https" ||
      std::find(protocols.begin(), protocols.end(), scheme) != protocols.end())
    return "";
  try {
    check_protocol(scheme);
  } catch (const Error&) {
    return vfm::format(
        "cannot open '{}': '{}' is no protocol that is read here; copy it, or mount it", name,
        scheme);
  }
  return vfm::format(
      "cannot open '{}': only files, http and https are opened; allow others with --protocols {}",
      name, scheme);
}

void refuse_address(std::string_view name) {
  if (const std::string refused = no_file_message(name); !refused.empty())
    fail_as(Cause::refused, "{}", refused);
}

}  // namespace vfm
