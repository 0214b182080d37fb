// Requests over http and https by libcurl, with connections that are kept.
//
// What io/http.h says holds: a request goes to the named address only, redirects are not followed,
// proxies of the environment are not used, certificates are verified, and a stop (base/stop.h) ends
// a request. Bodies are neither copied nor held when they are sent, nor when a sink takes them.
// Thread-safety: any thread; each request of a session that is under way has its own connection.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::io {

struct WebAnswer {
  int status = 0;                              ///< HTTP status, or 0 without an answer.
  std::map<std::string, std::string> headers;  ///< Names in lower case.
  std::string body;                            ///< Unless a sink took it.
  std::string fault;                           ///< Reason for an incomplete answer, or empty.
  bool hopeless = false;                       ///< Another try has the same fault.
  std::optional<double> retry_after;           ///< Seconds that the server asks to wait.

  /// Returns the header of this name in lower case, or an empty text.
  const std::string& header(const std::string& name) const;
  bool succeeded() const { return fault.empty() && status >= 200 && status < 300; }
};

/// Takes the body of an answer with a status of 200 to 299.
struct WebSink {
  /// Called before the first byte. Returns false to end the request.
  std::function<bool(const WebAnswer&)> begin;
  /// Returns false to end the request.
  std::function<bool(std::span<const char>)> take;
};

struct WebRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers;  ///< Lines "Name: value".
  std::string_view body;             ///< Stays where it is until the answer.
  const WebSink* sink = nullptr;
  double connect_seconds = 30;
  double silent_seconds = 60;  ///< The longest time in which no byte comes or goes.
  /// The same after the whole body has gone, or the time that the body took: what is between this
  /// machine and the server may hold much of it. 0: silent_seconds.
  double answer_seconds = 0;
  double seconds = 0;          ///< Limit of the whole request, or 0.
  std::size_t most_bytes = std::size_t{8} << 20;  ///< Size limit of WebAnswer::body.
  std::string ca_file;                            ///< Certificates to trust, or the system's.
  const std::atomic<bool>* cancelled = nullptr;   ///< If it becomes true, the request ends.
  bool despite_stop = false;                      ///< A stop does not end the request.
};

class WebSession {
 public:
  WebSession();
  ~WebSession();
  WebSession(const WebSession&) = delete;
  WebSession& operator=(const WebSession&) = delete;

  /// Sends the request and waits for the answer. Errors of the server or network are in WebAnswer.
  /// Throws Stopped, also if the request was cancelled, and what a sink throws.
  WebAnswer exchange(const WebRequest& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::io
