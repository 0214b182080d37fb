// A small server that speaks S3 over HTTP, on threads of this process, with faults on demand. It
// keeps objects in memory. It does not check signatures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/loopback.h"

namespace vfm {

struct ServedRequest {
  std::string method, path;                           ///< "/bucket/key", decoded.
  std::map<std::string, std::string> query, headers;  ///< Decoded; names in lower case.
  std::string body;
};

struct ServedAnswer {
  int status = 200;
  std::map<std::string, std::string> headers;
  std::string body;
  std::optional<std::size_t> cut;  ///< The connection is closed after so many bytes of the body.
};

class ObjectServer {
 public:
  /// Makes s3:// addresses lead here, with keys of the environment.
  ObjectServer();
  ~ObjectServer();

  /// Is called with each request and its number from 0 on. What it returns is the answer.
  std::function<std::optional<ServedAnswer>(const ServedRequest&, int)> before;
  /// May change the answer, after the request has had its effect.
  std::function<void(const ServedRequest&, int, ServedAnswer&)> after;
  std::atomic<int> pause{0};  ///< Milliseconds after each 64 KiB of a body that it reads.
  std::size_t page = 3;  ///< How many names one answer to a list has.
  /// The server's time is so many seconds after 2013-05-24 00:00:00. What is written has the time
  /// `seconds_at_write`.
  std::atomic<int> seconds{0}, seconds_at_write{0};
  std::atomic<bool> tells_upload_times{true};

  std::string url(const std::string& path) const { return listener_.url(path); }
  /// Returns an address of a bucket that no client knows yet.
  static std::string new_bucket();
  void put(const std::string& path, const std::string& contents);
  std::optional<std::string> get(const std::string& path);
  std::vector<ServedRequest> requests();
  /// Returns the number of requests with this method.
  int count(const std::string& method);
  int uploads();
  /// Returns the paths of the uploads, and of all objects, in order.
  std::vector<std::string> upload_paths();
  std::vector<std::string> object_paths();
  int connections() const { return connections_; }

 private:
  struct Object {
    std::string contents;
    std::map<std::string, std::string> headers;  // ETag and metadata
    int seconds = 0;
  };
  struct Upload {
    std::string path;
    std::map<std::string, std::string> headers;
    std::map<int, std::string> parts;
    int seconds = 0;
  };

  void accept();
  void serve(int socket);
  ServedAnswer answer(const ServedRequest& request);
  ServedAnswer get(const ServedRequest& request);
  ServedAnswer put(const ServedRequest& request);
  ServedAnswer post(const ServedRequest& request);
  ServedAnswer list(const ServedRequest& request);
  std::optional<ServedAnswer> conflict(const ServedRequest& request) const;
  void keep(const std::string& path, std::string contents,
            const std::map<std::string, std::string>& headers);

  Loopback listener_;
  std::mutex mutex_;
  std::map<std::string, Object> objects_;
  std::map<std::string, Upload> uploads_;
  std::vector<ServedRequest> requests_;
  std::vector<std::thread> threads_;
  std::vector<int> sockets_;
  std::atomic<int> connections_{0};
  int kept_ = 0;
};

ServedAnswer served_error(int status, const std::string& code);

}  // namespace vfm
