// SPDX-License-Identifier: Apache-2.0
#include "io/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string_view>

#include "base/error.h"
#include "base/stop.h"

namespace vfm::io {
namespace {

struct Transfer {
  const HttpRequest& request;
  HttpAnswer answer;
  bool too_large = false;
};

std::size_t take_body(char* data, std::size_t one, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::size_t size = one * count;
  if (transfer.answer.body.size() + size > transfer.request.most_bytes) {
    transfer.too_large = true;
    return 0;  // ends the transfer
  }
  transfer.answer.body.append(data, size);
  return size;
}

int stop_asked(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return stop_requested();
}

void begin_curl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

}  // namespace

bool have_http() {
  return true;
}

std::string http_version() {
  const curl_version_info_data* info = curl_version_info(CURLVERSION_NOW);
  return fmt::format("libcurl {} ({})\n", info->version,
                     info->ssl_version ? info->ssl_version : "without TLS");
}

HttpAnswer http_exchange(const HttpRequest& request) {
  begin_curl();
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 curl_easy_cleanup);
  if (!curl) fail("libcurl cannot be started");
  curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
  list = curl_slist_append(list, "Accept: application/json");
  list = curl_slist_append(list, "Expect:");
  if (!request.secret.empty())
    list = curl_slist_append(list, ("Authorization: Bearer " + request.secret).c_str());
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(list,
                                                                            curl_slist_free_all);
  Transfer transfer{request, {}};
  char said[CURL_ERROR_SIZE] = {};
  const auto set = [&](CURLoption option, auto value) {
    if (curl_easy_setopt(curl.get(), option, value) != CURLE_OK)
      fail("this libcurl lacks an option that is needed ({})", static_cast<int>(option));
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(said));
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_PROXY, "");
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_HTTPHEADER, headers.get());
  if (!request.body.empty()) {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.c_str());
  }
  set(CURLOPT_WRITEFUNCTION, &take_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(CURLOPT_XFERINFOFUNCTION, &stop_asked);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_seconds * 1000));
  set(CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(request.seconds * 1000)));
  set(CURLOPT_USERAGENT, "vfm");
  const CURLcode code = curl_easy_perform(curl.get());
  check_stop();
  HttpAnswer answer = std::move(transfer.answer);
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  curl_off_t wait = 0;
  if (curl_easy_getinfo(curl.get(), CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
    answer.retry_after = static_cast<double>(wait);
  if (transfer.too_large)
    answer.fault = fmt::format("the answer is larger than {} bytes", request.most_bytes);
  else if (code == CURLE_OPERATION_TIMEDOUT)
    answer.fault = "timed out";
  else if (code != CURLE_OK)
    answer.fault = said[0] ? said : curl_easy_strerror(code);
  return answer;
}

}  // namespace vfm::io
