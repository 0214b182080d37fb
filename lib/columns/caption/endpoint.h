// Captions from a server that speaks OpenAI's chat completions: it gets frames of a clip as JPEG in
// data: URLs and a prompt, and returns a text. Each further question (columns/caption/questions.h)
// is a separate request.
//
// Requests wait in line for a bounded number of threads. Temporary failures are tried again, with
// growing pauses, and no sooner than the server asks (Retry-After, for all requests): no
// connection, time out, 408, 409, 425, 429, 5xx, an incomplete or unusable answer. A refusal (other
// 4xx), or tries that run out, are the clip's fault. The server is at fault for an answer that
// every clip would get (401, 402, 403, 404, 405, a redirect), or if clips fail one after the other
// in any way: then requests end.
// No message has the secret: wherever the server repeats it, it is replaced; also in captions, if
// it has 8 characters or more. Thread-safety: any thread.
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
  std::string url;           ///< "http://host:8000/v1", or with "/chat/completions"; empty: none
  std::string model;         ///< its name there; empty: the server has one alone (served_model())
  std::string key_variable;  ///< of the environment, with the secret; empty: the usual one
  std::string secret;
  std::string prompt =
      "Describe this video in one paragraph: what is in it, what happens in which order, and how "
      "the camera moves.";
  int frames = 8;         ///< frames of a clip, chosen by plan_clip_frames()
  int side = 512;         ///< longer side of a frame; smaller frames keep their size
  int parallel = 4;       ///< requests at once
  int retries = 5;        ///< tries of a request after the first
  double wait = 1;        ///< seconds before the second try, doubled for each further one
  double seconds = 120;   ///< for one try
  int most_tokens = 512;  ///< of an answer
  double temperature = 0;
  Questions also;                                   ///< asked beside the prompt
  bool send_schema = false;                         ///< sends their schemas as "response_format"
  std::optional<double> input_price, output_price;  ///< of a million tokens
};

/// The server, or the connection, fails for all clips.
class EndpointDown : public Error {
 public:
  explicit EndpointDown(const std::string& why) : Error(why, Cause::server) {}
};

class Endpoint {
 public:
  /// Throws Error{usage} for an invalid address or options.
  explicit Endpoint(EndpointOptions options);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  const EndpointOptions& options() const { return options_; }
  /// Whether the value from an answer's JSON has the secret, which escapes may have hidden.
  bool has_secret(const AnswerValue& said) const;
  /// The bodies of the requests for a sample: for its caption, and for each further question. The
  /// hash of one names the answer. Throws Error, naming `where`, if nothing decodes. `facts`: as
  /// take_frames() returns them.
  std::vector<std::string> requests(const shard::Member& member, const std::string& where,
                                    const Json& known, const media::HardwareDecoder* hardware,
                                    Json& facts) const;
  /// The answer, or Error for the clip (Cause::server, Cause::rejected), EndpointDown, Stopped.
  /// `clip`: its name, to tell a failing server from a failing clip. `keep` gets the answer first,
  /// on the request's thread, even if nobody waits for it.
  std::future<EndpointAnswer> ask(std::string request, std::string clip,
                                  std::function<void(const EndpointAnswer&)> keep);
  /// All requests and tries so far.
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
  /// Throws Error of that cause; EndpointDown after too many failures.
  [[noreturn]] void fail_clip(Cause cause, const std::string& clip, const std::string& why);

  EndpointOptions options_;
  std::atomic<std::uint64_t> tries_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool ending_ = false;
  std::set<std::string> failed_in_a_row_;  ///< clips
  std::string down_;                       ///< why; empty: up
  Clock::time_point not_before_{};         ///< as the server asked
  std::vector<std::thread> threads_;
};

/// The name of the server's only model. Throws Error{usage} if it has several; Error if it does not
/// list them; Stopped.
std::string served_model(const EndpointOptions& options);

/// The same request with a seed, for another drawn answer.
std::string request_with_seed(std::string request, int seed);

/// The options that decide the column; no address, so that a server may move.
Json endpoint_config(const EndpointOptions& options);

}  // namespace vfm::columns
