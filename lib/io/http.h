// GET and POST requests over http and https, by libcurl (http.cc).
//
// Requests may contain a secret, so they are sent only to the named address. Redirects are not
// followed, proxies of the environment are not used, and certificates are verified. A stop
// (base/stop.h) ends a request. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace vfm::io {

struct HttpRequest {
  std::string url;
  std::string body;    ///< JSON for POST, or empty for GET.
  std::string secret;  ///< Secret, sent as "Authorization: Bearer SECRET", or empty.
  double connect_seconds = 30, seconds = 120;
  std::size_t most_bytes = std::size_t{8} << 20;  ///< Size limit of the answer.
};

struct HttpAnswer {
  int status = 0;  ///< HTTP status, or 0 without an answer.
  std::string body;
  std::string fault;                  ///< Reason for an incomplete answer, such as "timed out".
  std::optional<double> retry_after;  ///< Seconds that the server asks to wait.
};

/// Returns whether http_exchange() works in this build.
bool have_http();
/// Returns for example "libcurl 7.88.1 (OpenSSL 3.0.15)\n", or "" in a build without libcurl.
std::string http_version();

/// Throws Error{usage} if `url` does not begin with http:// or https://, if it has no host, or if
/// it has a user, a query or a fragment.
void check_http_url(const std::string& url);

/// Sends the request and waits for the answer. Errors of the server or network are in HttpAnswer.
/// Throws Stopped. Throws Error{usage} in a build without libcurl.
HttpAnswer http_exchange(const HttpRequest& request);

}  // namespace vfm::io
