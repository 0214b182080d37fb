// SPDX-License-Identifier: Apache-2.0
#include "io/remote/session.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <mutex>

#include "base/error.h"
#include "base/stop.h"

namespace vfm::io {
namespace {

constexpr std::size_t kMostHeaderBytes = std::size_t{64} << 10;
constexpr std::size_t kMostIdle = 64;        // connections kept by a session
constexpr long kReceiveBuffer = 512L << 10;  // the most that libcurl takes
constexpr long kSendBuffer = 512L << 10;

using CurlHandle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using CurlList = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;
using WebClock = std::chrono::steady_clock;

struct WebTransfer {
  const WebRequest& request;
  WebAnswer answer;
  CURL* curl = nullptr;
  std::size_t header_bytes = 0;
  bool began = false, too_large = false, silent = false, refused = false, cancelled = false;
  curl_off_t moved = -1;
  const WebClock::time_point begin = WebClock::now();
  WebClock::time_point last = begin;
  std::exception_ptr error;
};

std::size_t take_header(char* data, std::size_t one, std::size_t count, void* user) {
  auto& transfer = *static_cast<WebTransfer*>(user);
  const std::size_t size = one * count;
  std::string_view line(data, size);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r' || line.back() == ' '))
    line.remove_suffix(1);
  if (line.starts_with("HTTP/")) transfer.answer.headers.clear();
  const std::size_t colon = line.find(':');
  transfer.header_bytes += size;
  if (colon == line.npos || transfer.header_bytes > kMostHeaderBytes) return size;
  std::string name(line.substr(0, colon));
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  line.remove_prefix(colon + 1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t'))
    line.remove_prefix(1);
  transfer.answer.headers[std::move(name)] = std::string(line);
  return size;
}

bool take_bytes(WebTransfer& transfer, std::span<const char> bytes) {
  WebAnswer& answer = transfer.answer;
  if (!transfer.began) {
    transfer.began = true;
    long status = 0;
    curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
    answer.status = static_cast<int>(status);
    const bool sinks = transfer.request.sink && status >= 200 && status < 300;
    if (sinks && transfer.request.sink->begin && !transfer.request.sink->begin(answer))
      return !(transfer.refused = true);
  }
  if (transfer.request.sink && answer.status >= 200 && answer.status < 300) {
    const bool more = transfer.request.sink->take(bytes);
    transfer.refused = !more;
    transfer.last = WebClock::now();  // The sink may have waited.
    return more;
  }
  if (answer.body.size() + bytes.size() > transfer.request.most_bytes)
    return !(transfer.too_large = true);
  answer.body.append(bytes.data(), bytes.size());
  return true;
}

std::size_t take_body(char* data, std::size_t one, std::size_t count, void* user) {
  auto& transfer = *static_cast<WebTransfer*>(user);
  const std::size_t size = one * count;
  try {
    return take_bytes(transfer, {data, size}) ? size : 0;  // 0 ends the transfer
  } catch (...) {                                          // libcurl is C
    transfer.error = std::current_exception();
    return 0;
  }
}

/// Called by libcurl again and again, at least once a second.
int must_end(void* user, curl_off_t, curl_off_t down, curl_off_t, curl_off_t up) {
  auto& transfer = *static_cast<WebTransfer*>(user);
  if (stop_requested() && !transfer.request.despite_stop) return 1;
  if (transfer.request.cancelled && transfer.request.cancelled->load(std::memory_order_relaxed)) {
    transfer.cancelled = true;
    return 1;
  }
  const WebClock::time_point now = WebClock::now();
  if (down + up != transfer.moved) {
    transfer.moved = down + up;
    transfer.last = now;
  }
  const WebRequest& request = transfer.request;
  double most = request.silent_seconds;
  if (down == 0 && !request.body.empty() && up >= static_cast<curl_off_t>(request.body.size())) {
    const double body = std::chrono::duration<double>(transfer.last - transfer.begin).count();
    most = std::max({most, request.answer_seconds, std::min(body, 4 * request.answer_seconds)});
  }
  const std::chrono::duration<double> quiet = now - transfer.last;
  transfer.silent = quiet.count() > most;
  return transfer.silent;
}

/// Bytes that wait in the system for a slow server count as sent, so only few of them wait there.
int prepare_socket(void*, curl_socket_t socket, curlsocktype) {
#ifdef TCP_NOTSENT_LOWAT
  const int bytes = static_cast<int>(kSendBuffer);
  ::setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
#endif
  return CURL_SOCKOPT_OK;
}

/// What all requests of the process share: names of hosts and TLS sessions.
class CurlShare {
 public:
  static CURLSH* get() {
    static CurlShare& share = *new CurlShare;  // used until the process ends
    return share.share_;
  }

 private:
  CurlShare() {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    share_ = curl_share_init();
    if (!share_) fail("libcurl cannot be started");
    curl_share_setopt(share_, CURLSHOPT_USERDATA, this);
    curl_share_setopt(share_, CURLSHOPT_LOCKFUNC, &lock);
    curl_share_setopt(share_, CURLSHOPT_UNLOCKFUNC, &unlock);
    curl_share_setopt(share_, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
    curl_share_setopt(share_, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  }
  static void lock(CURL*, curl_lock_data data, curl_lock_access, void* user) {
    static_cast<CurlShare*>(user)->locks_[static_cast<std::size_t>(data)].lock();
  }
  static void unlock(CURL*, curl_lock_data data, void* user) {
    static_cast<CurlShare*>(user)->locks_[static_cast<std::size_t>(data)].unlock();
  }

  CURLSH* share_ = nullptr;
  std::array<std::mutex, CURL_LOCK_DATA_LAST> locks_;
};

template <class Value>
void set_option(CURL* curl, CURLoption option, Value value) {
  if (curl_easy_setopt(curl, option, value) != CURLE_OK)
    fail("this libcurl lacks an option that is needed ({})", static_cast<int>(option));
}

bool is_hopeless(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_SSL_CERTPROBLEM || code == CURLE_URL_MALFORMAT ||
         code == CURLE_UNSUPPORTED_PROTOCOL;
}

void set_method(CURL* curl, const WebRequest& request) {
  if (request.method == "HEAD") {
    set_option(curl, CURLOPT_NOBODY, 1L);
  } else if (!request.body.empty() || request.method == "PUT" || request.method == "POST") {
    set_option(curl, CURLOPT_POST, 1L);
    set_option(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set_option(curl, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
  } else {
    set_option(curl, CURLOPT_HTTPGET, 1L);
  }
  if (request.method != "HEAD" && request.method != "GET")
    set_option(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

CurlList header_list(const WebRequest& request) {
  CurlList list(nullptr, curl_slist_free_all);
  const auto append = [&](const char* line) {
    curl_slist* longer = curl_slist_append(list.get(), line);
    if (!longer) throw std::bad_alloc();
    list.release();
    list.reset(longer);
  };
  append("Expect:");
  bool typed = false;
  for (const std::string& line : request.headers) {
    append(line.c_str());
    typed = typed || line.starts_with("Content-Type:");
  }
  if (!typed) append("Content-Type:");  // none
  return list;
}

void set_all(CURL* curl, const WebRequest& request, WebTransfer& transfer) {
  set_option(curl, CURLOPT_SHARE, CurlShare::get());
  set_option(curl, CURLOPT_URL, request.url.c_str());
  set_option(curl, CURLOPT_PATH_AS_IS, 1L);
  set_option(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  set_option(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set_option(curl, CURLOPT_FOLLOWLOCATION, 0L);
  set_option(curl, CURLOPT_PROXY, "");
  set_option(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  set_option(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!request.ca_file.empty()) set_option(curl, CURLOPT_CAINFO, request.ca_file.c_str());
  set_method(curl, request);
  set_option(curl, CURLOPT_HEADERFUNCTION, &take_header);
  set_option(curl, CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  set_option(curl, CURLOPT_WRITEFUNCTION, &take_body);
  set_option(curl, CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set_option(curl, CURLOPT_XFERINFOFUNCTION, &must_end);
  set_option(curl, CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
  set_option(curl, CURLOPT_NOPROGRESS, 0L);
  set_option(curl, CURLOPT_NOSIGNAL, 1L);
  set_option(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  set_option(curl, CURLOPT_SOCKOPTFUNCTION, &prepare_socket);
  set_option(curl, CURLOPT_BUFFERSIZE, kReceiveBuffer);
  set_option(curl, CURLOPT_UPLOAD_BUFFERSIZE, kSendBuffer);
  const auto milliseconds = [](double seconds) {
    return std::max(1L, static_cast<long>(std::min(seconds, 1e6) * 1000));
  };
  set_option(curl, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request.connect_seconds));
  if (request.seconds > 0) set_option(curl, CURLOPT_TIMEOUT_MS, milliseconds(request.seconds));
  set_option(curl, CURLOPT_USERAGENT, "vfm");
}

}  // namespace

const std::string& WebAnswer::header(const std::string& name) const {
  static const std::string none;
  const auto found = headers.find(name);
  return found == headers.end() ? none : found->second;
}

struct WebSession::State {
  std::mutex mutex;
  std::vector<CurlHandle> idle;  // the one used last is at the end, with a warm connection
};

WebSession::WebSession() : state_(std::make_unique<State>()) {}
WebSession::~WebSession() = default;

WebAnswer WebSession::exchange(const WebRequest& request) {
  if (!request.despite_stop) check_stop();
  CurlHandle curl(nullptr, curl_easy_cleanup);
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->idle.empty()) {
      curl = std::move(state_->idle.back());
      state_->idle.pop_back();
    }
  }
  CurlShare::get();  // starts libcurl
  if (!curl) curl.reset(curl_easy_init());
  if (!curl) fail("libcurl cannot be started");
  const CurlList headers = header_list(request);
  WebTransfer transfer{request, {}, curl.get()};
  char said[CURL_ERROR_SIZE] = {};
  set_all(curl.get(), request, transfer);
  set_option(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  set_option(curl.get(), CURLOPT_ERRORBUFFER, static_cast<char*>(said));
  const CURLcode code = curl_easy_perform(curl.get());
  WebAnswer answer = std::move(transfer.answer);
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  curl_off_t wait = 0;
  if (curl_easy_getinfo(curl.get(), CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
    answer.retry_after = static_cast<double>(wait);
  curl_easy_reset(curl.get());  // keeps the connections
  {
    const std::lock_guard lock(state_->mutex);
    // After a failure there is no connection to keep. libcurl 7.88 refuses CURLOPT_BUFFERSIZE for
    // a handle that did not find its host.
    if (code == CURLE_OK && state_->idle.size() < kMostIdle)
      state_->idle.push_back(std::move(curl));
  }
  if (transfer.error) std::rethrow_exception(transfer.error);
  if (!request.despite_stop) check_stop();
  if (transfer.cancelled) throw Stopped();
  if (code == CURLE_OK && !transfer.began && request.sink && request.sink->begin && status >= 200 &&
      status < 300)
    transfer.refused = !request.sink->begin(answer);  // an empty body
  if (transfer.too_large)
    answer.fault = fmt::format("the answer is larger than {} bytes", request.most_bytes);
  else if (code == CURLE_OPERATION_TIMEDOUT || transfer.silent)
    answer.fault = "timed out";
  else if (transfer.refused)
    answer.fault = "the answer is not taken";
  else if (code != CURLE_OK)
    answer.fault = said[0] ? said : curl_easy_strerror(code);
  answer.hopeless = transfer.too_large || transfer.refused || is_hopeless(code);
  return answer;
}

}  // namespace vfm::io
