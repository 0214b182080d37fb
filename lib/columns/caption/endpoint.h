// Captions from a server with OpenAI's chat completions API. A request has a prompt, and frames of
// a clip as JPEG in data: URLs.
//
// After a temporary failure (no connection, timeout, status 408, 409, 425, 429 or 5xx, an
// incomplete or unusable answer) a request is sent again. The pauses before further tries grow, and
// Retry-After delays all requests. If all tries fail, or if the server refuses the request (any
// other status 4xx), the clip has an error. After status 401, 402, 403, 404 or 405, a redirect, or
// the failure of many clips in a row, no more requests are sent. In messages the secret (the API
// key) is masked. In captions only secrets of at least 8 characters are masked. Thread-safety: any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/json_fwd.h"
#include "columns/caption/endpoint_answer.h"
#include "columns/caption/questions.h"
#include "media/decode/hardware.h"
#include "shard/sample.h"

namespace vfm::columns {

struct EndpointOptions {
  std::string url;           ///< Address, such as "http://host:8000/v1", or empty for no server.
  std::string model;         ///< Name of the model, or empty for the server's only model.
  std::string key_variable;  ///< Environment variable of the secret; if empty, VFM_ENDPOINT_KEY.
  std::string secret;
  std::string prompt =
      "Describe this video in one paragraph: what is in it, what happens in which order, and how "
      "the camera moves.";
  int frames = 8;         ///< Number of frames to send for a clip.
  int side = 512;         ///< Longer side of a frame in pixels. Smaller frames are not scaled.
  int parallel = 4;       ///< Number of requests at the same time.
  int retries = 5;        ///< Number of tries after the first try.
  double wait = 1;        ///< Pause in seconds before the second try, doubled for each further try.
  double seconds = 120;   ///< Time limit of a try in seconds.
  int most_tokens = 512;  ///< Largest number of tokens of an answer.
  double temperature = 0;
  Questions also;
  bool send_schema = false;  ///< If true, schemas are sent as "response_format".
  std::optional<double> input_price, output_price;  ///< Prices of a million tokens.
};

/// The error of a server or connection that fails for all clips.
class EndpointDown : public Error {
 public:
  explicit EndpointDown(const std::string& why) : Error(why, Cause::server) {}
};

class Endpoint {
 public:
  /// Throws Error{usage} if the address or an option is invalid.
  explicit Endpoint(EndpointOptions options);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  const EndpointOptions& options() const { return options_; }
  /// Returns whether a parsed answer contains a secret of at least kShortestKey characters.
  bool has_secret(const AnswerValue& said) const;
  /// Returns the bodies of a sample's requests: the request for the caption, then a request for
  /// each further question. Sets `facts` to the result of take_frames(). Throws Error, which names
  /// `where`, if no frame decodes.
  std::vector<std::string> requests(const shard::Member& member, const std::string& where,
                                    const Json& known, const media::HardwareDecoder* hardware,
                                    Json& facts) const;
  /// Sends a request. Returns a future with the answer or an exception. The exception is Error
  /// (Cause::server or Cause::rejected) if only this clip fails, EndpointDown, or Stopped. `clip`
  /// is the clip's name, by which clips that fail in a row are counted. `keep` is called with the
  /// answer, in a thread of the Endpoint, before the future is ready.
  std::future<EndpointAnswer> ask(std::string request, std::string clip,
                                  std::function<void(const EndpointAnswer&)> keep);
  std::uint64_t tries() const { return tries_; }

 private:
  struct Job {
    std::string request, clip;
    std::function<void(const EndpointAnswer&)> keep;
    std::promise<EndpointAnswer> promise;
  };
  using Clock = std::chrono::steady_clock;

  void work();
  EndpointAnswer answer(const Job& job);
  void pause(Clock::time_point until);
  /// Throws Error with `cause`, or EndpointDown after too many failures.
  [[noreturn]] void fail_clip(Cause cause, const std::string& clip, const std::string& why);

  EndpointOptions options_;
  std::atomic<std::uint64_t> tries_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool ending_ = false;
  std::set<std::string> failed_in_a_row_;
  std::string down_;                       ///< Reason for sending no more requests, or empty.
  Clock::time_point not_before_{};         ///< Time from Retry-After.
  std::vector<std::thread> threads_;
};

/// Returns the name of the server's only model. Throws Error{usage} for several models, and Error
/// for no model. Throws Stopped.
std::string served_model(const EndpointOptions& options);

/// Returns `request` with a seed.
std::string request_with_seed(std::string request, int seed);

/// Returns the options that affect the captions. The server's address is left out.
Json endpoint_config(const EndpointOptions& options);

}  // namespace vfm::columns
