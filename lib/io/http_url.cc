// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "io/http.h"

namespace vfm::io {

void check_http_url(const std::string& url) {
  const std::size_t scheme = url.starts_with("http://") ? 7 : url.starts_with("https://") ? 8 : 0;
  if (scheme == 0)
    fail_usage("'{}' is not an address: it must begin with http:// or https://", url);
  const std::string host = url.substr(scheme, url.find('/', scheme) - scheme);
  // The part before an @ may be a password, so the message does not quote the address.
  if (url.find('@') != url.npos)
    fail_usage("an address with a user or password is not taken: it would be shown and recorded");
  for (const char c : url)
    if (c == '?' || c == '#' || static_cast<unsigned char>(c) <= ' ')
      fail_usage("an address with '{}' is not taken", c);
  if (host.empty()) fail_usage("'{}' has no host", url);
}

}  // namespace vfm::io
