// SPDX-License-Identifier: Apache-2.0
#include "io/http.h"

#include <curl/curl.h>

#include "base/error.h"
#include "io/remote/session.h"

namespace vfm::io {

bool have_http() {
  return true;
}

std::string http_version() {
  const curl_version_info_data* info = curl_version_info(CURLVERSION_NOW);
  return fmt::format("libcurl {} ({})\n", info->version,
                     info->ssl_version ? info->ssl_version : "without TLS");
}

HttpAnswer http_exchange(const HttpRequest& request) {
  WebRequest sent;
  sent.method = request.body.empty() ? "GET" : "POST";
  sent.url = request.url;
  sent.headers = {"Content-Type: application/json", "Accept: application/json"};
  if (!request.secret.empty()) sent.headers.push_back("Authorization: Bearer " + request.secret);
  sent.body = request.body;
  sent.connect_seconds = request.connect_seconds;
  sent.seconds = sent.silent_seconds = request.seconds;
  sent.most_bytes = request.most_bytes;
  WebAnswer got = WebSession().exchange(sent);
  return {got.status, std::move(got.body), std::move(got.fault), got.retry_after};
}

}  // namespace vfm::io
