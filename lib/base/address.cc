// SPDX-License-Identifier: Apache-2.0
#include "base/address.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/format.h"
#include "base/input_limits.h"
#include "base/shown_name.h"

namespace vfm {
namespace {

/// Returns the scheme before the colon in lower case, or "".
std::string scheme_before(std::string_view name, std::size_t colon) {
  if (colon == 0 || colon == std::string_view::npos) return "";
  std::string scheme(name.substr(0, colon));
  for (char& c : scheme) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '+' && c != '-' && c != '.') return "";
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return scheme;
}

/// `scheme` is that of `name`, in lower case.
bool is_read_everywhere(std::string_view name, std::string_view scheme) {
  return name.starts_with(scheme) &&
         (scheme == "s3" || scheme == "msc" || scheme == "http" || scheme == "https");
}

}  // namespace

std::string url_scheme(std::string_view name) {
  return scheme_before(name, name.find("://"));
}

std::string shown_name(std::string_view name) {
  const std::string scheme = url_scheme(name);
  if (scheme.empty()) return std::string(name);
  const std::size_t begin = scheme.size() + 3;
  std::string_view rest = name.substr(begin);
  std::string shown(name.substr(0, begin));
  if (const std::size_t at = rest.substr(0, rest.find('/')).rfind('@'); at != rest.npos) {
    shown += "...";
    rest.remove_prefix(at);
  }
  const bool keyed = scheme == "s3" || scheme == "msc";
  const std::size_t query = keyed ? rest.npos : rest.find_first_of("?#");
  shown += rest.substr(0, query);
  return query == rest.npos ? shown : shown + rest[query] + "...";
}

std::string no_file_message(std::string_view name) {
  // Some libraries turn "s3://bucket" into "s3:/bucket". A single letter, as in "C:/", is a drive
  // of Windows.
  const std::string scheme = scheme_before(name, name.find(":/"));
  if (scheme.size() < 2) return "";
  if (scheme == "file")
    return vfm::format("'{}' is an address; give the path, '{}'", name,
                       name.substr(scheme.size() + (url_scheme(name).empty() ? 1 : 3)));
  if (!is_read_everywhere(name, scheme))
    return vfm::format(
        "'{}' is an address of a kind that vfm does not read; give one of s3:// or https://, copy "
        "it, or mount it",
        shown_name(name));
  if (url_scheme(name).empty())
    return vfm::format("'{}' is no address; write '{}://{}'", name, scheme,
                       name.substr(scheme.size() + 2));
  return "";
}

std::string no_video_message(std::string_view name, std::span<const std::string> protocols) {
  const std::string scheme = url_scheme(name);
  if (scheme.empty() || scheme == "file" || is_read_everywhere(name, scheme) ||
      std::find(protocols.begin(), protocols.end(), scheme) != protocols.end())
    return "";
  try {
    check_protocol(scheme);
  } catch (const Error&) {
    return vfm::format(
        "cannot open '{}': '{}' is not a protocol that vfm reads; copy it, or mount it",
        shown_name(name), scheme);
  }
  return vfm::format(
      "cannot open '{}': only files, s3, http and https are opened; allow others with --protocols "
      "{}",
      shown_name(name), scheme);
}

void refuse_address(std::string_view name) {
  if (const std::string refused = no_file_message(name); !refused.empty())
    fail_as(Cause::refused, "{}", refused);
}

}  // namespace vfm
