// Requests for objects that are sent again until they succeed, and the errors when they do not.
//
// A Requester knows one server. WebRequester asks addresses of the web as they are. S3Requester
// signs, follows a bucket to its region, takes over the server's clock, and renews credentials.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "io/remote/answer_xml.h"
#include "io/remote/credentials.h"
#include "io/remote/session.h"

namespace vfm::io {

struct ObjectRequest {
  std::string method = "GET";
  std::string key;  ///< Key in the bucket, empty for the bucket itself. A URL for WebRequester.
  std::map<std::string, std::string> query;    ///< Plain text.
  std::map<std::string, std::string> headers;  ///< Names in lower case.
  std::string_view body;
  std::string body_hash;  ///< sha256_hex(body), or empty. Saves the time for another try.
  const WebSink* sink = nullptr;
  bool long_work = false;       ///< The server may be silent for long, as when it copies.
  bool retry_conflict = false;  ///< 409 is tried again.
  std::size_t most_bytes = std::size_t{16} << 20;
  const std::atomic<bool>* cancelled = nullptr;
  bool once = false;  ///< Sent once, for at most five seconds, also after a stop.
};

/// While an object of this class exists, requests of this thread end when `cancelled` becomes true,
/// unless they have such a flag of their own.
class CancelledBy {
 public:
  explicit CancelledBy(const std::atomic<bool>& cancelled);
  ~CancelledBy();
  CancelledBy(const CancelledBy&) = delete;
  CancelledBy& operator=(const CancelledBy&) = delete;
};

struct ObjectAnswer : WebAnswer {
  AnswerError error;  ///< Of an answer with a status of 300 or more.
  int tries = 1;
};

struct WholeObject {
  std::string contents, version;
};

/// A range of an object as it was when it was opened.
struct ObjectRange {
  std::string key;
  std::string address;  ///< For messages.
  std::string version;  ///< ETag, or empty.
  std::uint64_t object_bytes = 0;
  std::uint64_t offset = 0, size = 0;
};

class Requester {
 public:
  virtual ~Requester() = default;

  /// The address of a key, for messages.
  virtual std::string shown(const std::string& key) const { return key; }
  /// Sends the request until it succeeds, fails for good, or nothing has come for net_seconds().
  /// Throws Stopped.
  ObjectAnswer send(const ObjectRequest& request);
  /// Returns an object by one request, or nullopt if there is none. Throws Error{limit} if it has
  /// more than `most` bytes.
  std::optional<WholeObject> read(const std::string& key, const std::string& address,
                                  std::uint64_t most);
  /// Calls `take` with the bytes of the range, in order. After a fault, asks for the rest. Throws
  /// Error, also if the object has changed.
  void fetch(const ObjectRange& range, const std::function<void(std::span<const char>)>& take,
             const std::atomic<bool>* cancelled = nullptr);

 protected:
  /// Sends the request once.
  virtual ObjectAnswer try_once(const ObjectRequest& request) = 0;
  /// Sends what is ready to be sent, with the times of net_seconds().
  ObjectAnswer exchange(const ObjectRequest& request, WebRequest& sent);
  virtual bool signs() const { return false; }

 private:
  WebSession session_;
};

class WebRequester : public Requester {
 protected:
  ObjectAnswer try_once(const ObjectRequest& request) override;
};

class S3Requester : public Requester {
 public:
  /// Keys that begin with `shown_base` are shown with `shown_as` instead, as the user wrote them.
  /// Throws Error{usage} if the place's endpoint is no address.
  S3Requester(S3Place place, std::string bucket, std::string shown_as = "",
              std::string shown_base = "");

  const std::string& bucket() const { return bucket_; }
  /// Whether x-amz-checksum-crc32c is sent with a body, otherwise Content-MD5.
  bool checksums() const { return place_.checksums; }
  /// Whether the body is signed, because the connection does not protect it.
  bool signs_bodies() const;
  /// The server and the bucket, for messages and for what is asked once for each.
  std::string name() const;
  std::string shown(const std::string& key) const override;

 protected:
  ObjectAnswer try_once(const ObjectRequest& request) override;
  bool signs() const override { return true; }

 private:
  struct Where {
    std::string base, host, path;  // "https://host:port", "host:port", "/path/before/key"
  };
  Where where(const std::string& region) const;
  WebRequest prepare(const ObjectRequest& request, const std::optional<Credentials>& keys);
  bool take_region(const ObjectAnswer& answer);
  bool take_clock(const ObjectAnswer& answer, bool bodyless);

  const S3Place place_;
  const std::string bucket_, shown_as_, shown_base_;
  mutable std::mutex mutex_;
  std::string region_;      // guarded by mutex_
  double clock_ahead_ = 0;  // of the server's clock, guarded by mutex_
};

/// Throw an Error "cannot VERB 'ADDRESS': ..." that says what the answer means and what to do.
/// fail_write() ends the run if the server's space or quota is used up (base/full_disk.h).
[[noreturn]] void fail_read(std::string_view verb, const std::string& address,
                            const ObjectAnswer& answer);
[[noreturn]] void fail_write(std::string_view verb, const std::string& address,
                             const ObjectAnswer& answer);

}  // namespace vfm::io
