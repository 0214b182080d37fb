// Captions from a server with OpenAI's chat completions API. A request has frames of a clip, as
// JPEG in data: URLs, and a prompt.
//
// A queue of requests is sent by a fixed number of threads. After a temporary failure (no
// connection, timeout, 408, 409, 425, 429, 5xx, an incomplete or unusable answer) a request is sent
// again. The pauses grow, and Retry-After delays all requests. If tries run out, or the server
// refuses the request (any other 4xx), the error is the clip's. If every clip would fail in the
// same way (401, 402, 403, 404, 405, a redirect), or many clips in a row fail, no more requests are
// sent. If an answer contains the secret (the API key), messages mask it; captions mask only
// secrets of 8 characters or more. Thread-safety: any thread.
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
  std::string model;         ///< its name on the server; empty: the only model (served_model())
  std::string key_variable;  ///< environment variable with the secret; empty: VFM_ENDPOINT_KEY
  std::string secret;
  std::string prompt =
      "Describe this video in one paragraph: what is in it, what happens in which order, and how "
      "the camera moves.";
  int frames = 8;         ///< frames of a clip, chosen by plan_clip_frames()
  int side = 512;         ///< longer side of a frame; smaller frames keep their size
  int parallel = 4;       ///< requests at once
  int retries = 5;        ///< most tries of a request after the first
  double wait = 1;        ///< seconds before the second try, doubled for each further try
  double seconds = 120;   ///< time limit of one try
  int most_tokens = 512;  ///< limit for an answer
  double temperature = 0;
  Questions also;                                   ///< further questions
  bool send_schema = false;                         ///< sends schemas as "response_format"
  std::optional<double> input_price, output_price;  ///< per million tokens
};

/// The server or the connection fails for all clips.
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
  /// Returns whether an answer's parsed value contains the secret, even if escapes in the JSON text
  /// hid it.
  bool has_secret(const AnswerValue& said) const;
  /// Returns the bodies of a sample's requests: for the caption, then for each further question. An
  /// answer is stored by its request's hash (request_hash()). `facts` receives what take_frames()
  /// returns. Throws Error, which names `where`, if nothing decodes.
  std::vector<std::string> requests(const shard::Member& member, const std::string& where,
                                    const Json& known, const media::HardwareDecoder* hardware,
                                    Json& facts) const;
  /// Returns a future with the answer or an exception: Error for the clip (Cause::server,
  /// Cause::rejected), EndpointDown or Stopped. `clip`: a name, to count clips that fail in a row.
  /// The request's thread first passes the answer to `keep`.
  std::future<EndpointAnswer> ask(std::string request, std::string clip,
                                  std::function<void(const EndpointAnswer&)> keep);
  /// Returns the number of tries of all requests so far.
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
  /// Throws Error with `cause`; EndpointDown after too many failures.
  [[noreturn]] void fail_clip(Cause cause, const std::string& clip, const std::string& why);

  EndpointOptions options_;
  std::atomic<std::uint64_t> tries_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool ending_ = false;
  std::set<std::string> failed_in_a_row_;  ///< names of clips
  std::string down_;                       ///< reason; empty: the server is up
  Clock::time_point not_before_{};         ///< from Retry-After
  std::vector<std::thread> threads_;
};

/// Returns the name of the server's only model. Throws Error{usage} if the server has several
/// models, Error if it lists no model, and Stopped.
std::string served_model(const EndpointOptions& options);

/// Returns `request` with a seed, to draw a different answer.
std::string request_with_seed(std::string request, int seed);

/// Returns the options that decide the column. They lack the address, so a server may move.
Json endpoint_config(const EndpointOptions& options);

}  // namespace vfm::columns
