// SPDX-License-Identifier: Apache-2.0
#include "io/remote/address.h"

#include <algorithm>

#include "base/error.h"
#include "io/http.h"
#include "io/remote/msc.h"

namespace vfm::io {
namespace {

constexpr std::string_view kS3 = "s3://", kMsc = "msc://";

void check_object_name(std::string_view rest, const std::string& path) {
  for (const char c : rest)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
      fail_usage("an address has a control character, which is not taken");
  for (std::size_t begin = 0; begin <= rest.size();) {
    const std::size_t end = std::min(rest.find('/', begin), rest.size());
    const std::string_view step = rest.substr(begin, end - begin);
    if (step == "." || step == "..")
      fail_usage("'{}' has a step '{}', which is not taken", path, step);
    begin = end + 1;
  }
}

/// Names of buckets: letters, digits, '.', '-' and, in older ones, '_'.
void check_bucket(const std::string& bucket, const std::string& path) {
  if (bucket.find('@') != bucket.npos)
    fail_usage("an address with a user or password is not taken: it would be shown and recorded");
  if (bucket.empty()) fail_usage("'{}' has no bucket", path);
  const bool named = std::all_of(bucket.begin(), bucket.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
  if (!named || bucket.size() > 255 || bucket.front() == '.')
    fail_usage("'{}' has '{}' for a bucket, which is no bucket's name", path, bucket);
}

}  // namespace

bool is_bucket(std::string_view path) {
  return path.starts_with(kS3) || path.starts_with(kMsc);
}

bool is_remote(std::string_view path) {
  return is_bucket(path) || path.starts_with("http://") || path.starts_with("https://");
}

ObjectAddress address_of(const std::string& path) {
  ObjectAddress address;
  address.text = path;
  if (!is_remote(path))
    fail_usage("'{}' is not an address of s3://, https://, http:// or msc://", path);
  if (!is_bucket(path)) {
    check_http_url(path);
    address.kind = ObjectAddress::Kind::http;
    address.key = path;
    return address;
  }
  const bool msc = path.starts_with(kMsc);
  std::string_view rest = std::string_view(path).substr(msc ? kMsc.size() : kS3.size());
  check_object_name(rest, path);
  std::string whole;
  if (msc) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    address.profile = std::string(rest.substr(0, slash));
    check_bucket(address.profile, path);
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    whole = msc_profile(address.profile).base_path;
    if (!whole.empty()) whole += "/";
  }
  whole += rest;
  const std::size_t slash = std::min(whole.find('/'), whole.size());
  address.bucket = whole.substr(0, slash);
  check_bucket(address.bucket, path);
  address.key = whole.substr(std::min(slash + 1, whole.size()));
  if (address.key.size() > 1024) fail_usage("'{}' is longer than a key may be", path);
  return address;
}

}  // namespace vfm::io
