// GET and POST over http and https, by libcurl (http.cc). Builds without libcurl have no_http.cc.
//
// Requests may contain a secret, so they are sent only to the named address: no redirect is
// followed, no proxy of the environment is used, certificates are verified. A stop (base/stop.h)
// ends a request under way.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace vfm::io {

struct HttpRequest {
  std::string url;
  std::string body;    ///< JSON for POST; empty: GET
  std::string secret;  ///< sent as "Authorization: Bearer SECRET"; empty: not sent
  double connect_seconds = 30, seconds = 120;
  std::size_t most_bytes = std::size_t{8} << 20;  ///< most bytes of the answer
};

struct HttpAnswer {
  int status = 0;  ///< 0: no answer came
  std::string body;
  std::string fault;                  ///< why no whole answer came: "timed out"
  std::optional<double> retry_after;  ///< seconds from now, as the server asks
};

/// Returns whether http_exchange() works in this build.
bool have_http();
/// Returns "libcurl 7.88.1 (OpenSSL 3.0.15)\n", or "" in a build without libcurl.
std::string http_version();

/// Throws Error{usage} unless `url` is http:// or https:// with a host, and without user, query and
/// fragment, since logs and records show the URL.
void check_http_url(const std::string& url);

/// Sends the request and waits for the answer. Errors of the server or the network are in
/// HttpAnswer. Throws Stopped; Error{usage} in a build without libcurl.
HttpAnswer http_exchange(const HttpRequest& request);

}  // namespace vfm::io
