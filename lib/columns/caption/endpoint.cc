// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/endpoint.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "columns/caption/endpoint_answer.h"
#include "columns/clip_frames.h"
#include "io/http.h"
#include "media/container/picture_file.h"
#include "report/html.h"

namespace vfm::columns {
namespace {

constexpr std::size_t kMostInARow = 3;  ///< failed clips in a row
constexpr double kLongestWait = 300;    ///< seconds, also if the server asks for more
constexpr std::string_view kChat = "/chat/completions";
using Duration = std::chrono::steady_clock::duration;

bool passes(int status) {
  return status == 0 || status == 408 || status == 409 || status == 425 || status == 429 ||
         status >= 500;
}

bool same_for_all(int status) {
  return (status >= 300 && status < 400) || (status >= 401 && status <= 405);
}

Duration seconds(double count) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(count));
}

/// Returns the address without the part that requests add. Throws Error{usage} if it is invalid.
std::string base_address(std::string url) {
  if (!io::have_http())
    fail_usage("this build has no libcurl, so no server can be asked; build with -Dcurl=enabled");
  io::check_http_url(url);
  while (url.ends_with('/'))
    url.pop_back();
  if (url.ends_with(kChat)) url.resize(url.size() - kChat.size());
  return url;
}

io::HttpAnswer exchange(const EndpointOptions& options, const std::string& url,
                        const std::string& body) {
  return io::http_exchange({.url = url,
                            .body = body,
                            .secret = options.secret,
                            .connect_seconds = std::min(30.0, options.seconds),
                            .seconds = options.seconds});
}

void sleep_for(double count) {
  const auto until = std::chrono::steady_clock::now() + seconds(count);
  while (std::chrono::steady_clock::now() < until) {
    check_stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

class JpegTaker final : public MiddleFrames {
 public:
  JpegTaker(int count, int side) : MiddleFrames(count), side_(side) {}

  std::vector<std::string> taken;  // as data: URLs

 private:
  void use(const media::Frame& frame, const media::StreamInfo& info) override {
    media::ScaleOptions scale = as_shown(info);
    const int longer = std::max(scale.width, scale.height);
    const double by = longer > side_ ? static_cast<double>(side_) / longer : 1;
    for (int* size : {&scale.width, &scale.height})
      *size = std::max(1, static_cast<int>(std::lround(*size * by)));
    scaler_.to_rgb(frame, scale, image_);
    taken.push_back(report::data_url("image/jpeg", media::encode_jpeg(image_)));
  }
  void clear() override { taken.clear(); }

  int side_;
  media::Scaler scaler_;
  media::RgbImage image_;
};

}  // namespace

std::string served_model(const EndpointOptions& options) {
  const std::string url = base_address(options.url) + "/models";
  std::string why;
  for (int attempt = 0; attempt <= options.retries; ++attempt) {
    const io::HttpAnswer got = exchange(options, url, "");
    if (got.fault.empty() && got.status == 200) return only_model(got.body, options.secret);
    why = got.fault;
    if (why.empty())
      why = fmt::format("status {}{}", got.status, server_message(got.body, options.secret));
    // A fault with status 200 is an incomplete answer.
    if (!(passes(got.status) || got.status == 200) || attempt == options.retries) break;
    log_info("'{}', try {}: {}", url, attempt + 1, why);
    sleep_for(std::min(kLongestWait,
                       std::max(options.wait * std::pow(2, attempt), got.retry_after.value_or(0))));
  }
  fail("'{}' does not list the server's models: {}; name the model in a JSON file, vfm-endpoint(5)",
       url, why);
}

Endpoint::Endpoint(EndpointOptions options) : options_(std::move(options)) {
  options_.url = base_address(options_.url) + std::string(kChat);
  if (options_.model.empty()) fail_usage("the server's model has no name");
  if (!options_.secret.empty() && options_.url.starts_with("http://"))
    log_warning("the key goes to '{}' unencrypted", options_.url);
  for (int i = 0; i < options_.parallel; ++i)
    threads_.emplace_back([this] { work(); });
}

Endpoint::~Endpoint() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    jobs_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
}

bool Endpoint::has_secret(const AnswerValue& said) const {
  if (options_.secret.size() < kShortestKey) return false;
  std::string quoted = dump_json(Json(options_.secret));
  quoted = quoted.substr(1, quoted.size() - 2);
  return dump_json(said.value).find(quoted) != std::string::npos ||
         said.fault.find(options_.secret) != std::string::npos ||
         said.fault.find(quoted) != std::string::npos;
}

std::vector<std::string> Endpoint::requests(const shard::Member& member, const std::string& where,
                                            const Json& known,
                                            const media::HardwareDecoder* hardware,
                                            Json& facts) const {
  JpegTaker taker(options_.frames, options_.side);
  facts = take_frames(member, where, known, hardware, taker);
  if (taker.taken.empty()) fail("{}: no frame of it can be decoded", where);
  Json content = Json::array();
  for (const std::string& frame : taker.taken)
    content.push_back({{"type", "image_url"}, {"image_url", {{"url", frame}}}});
  content.push_back({{"type", "text"}, {"text", options_.prompt}});
  Json body = {{"model", options_.model},
               {"messages", Json::array({{{"role", "user"}, {"content", std::move(content)}}})},
               {"max_tokens", options_.most_tokens},
               {"temperature", options_.temperature},
               {"stream", false}};
  std::vector<std::string> bodies{dump_json(body)};
  for (const FurtherQuestion& question : options_.also.list) {
    body["messages"][0]["content"].back()["text"] = question.prompt;
    body.erase("response_format");
    if (question.schema && options_.send_schema)
      body["response_format"] = {
          {"type", "json_schema"},
          {"json_schema", {{"name", question.name}, {"schema", question.schema->json()}}}};
    bodies.push_back(dump_json(body));
  }
  return bodies;
}

std::future<EndpointAnswer> Endpoint::ask(std::string request, std::string clip,
                                          std::function<void(const EndpointAnswer&)> keep) {
  Job job{std::move(request), std::move(clip), std::move(keep), {}};
  std::future<EndpointAnswer> future = job.promise.get_future();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
  return future;
}

void Endpoint::work() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
      if (ending_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    try {
      const EndpointAnswer got = answer(job);
      job.keep(got);
      job.promise.set_value(got);
    } catch (...) {
      job.promise.set_exception(std::current_exception());
    }
  }
}

void Endpoint::fail_clip(Cause cause, const std::string& clip, const std::string& why) {
  const std::lock_guard lock(mutex_);
  failed_in_a_row_.insert(clip);
  if (failed_in_a_row_.size() < kMostInARow) throw Error(why, cause);
  if (down_.empty())
    down_ =
        fmt::format("{} clips failed one after the other, no more is asked: {}", kMostInARow, why);
  throw EndpointDown(down_);
}

/// Waits for both `until` and the time from Retry-After. Throws Stopped and EndpointDown.
void Endpoint::pause(Clock::time_point until) {
  for (;;) {
    check_stop();
    std::unique_lock lock(mutex_);
    if (!down_.empty()) throw EndpointDown(down_);
    if (ending_) throw Stopped();
    const auto then = std::max(until, not_before_);
    const auto now = Clock::now();
    if (now >= then) return;
    changed_.wait_for(lock, std::min<Clock::duration>(then - now, std::chrono::milliseconds(100)));
  }
}

EndpointAnswer Endpoint::answer(const Job& job) {
  // Requests that failed together must not be repeated at the same time.
  const double share =
      static_cast<double>(std::stoul(hash_hex(job.request).substr(0, 4), nullptr, 16)) / 65536;
  Clock::time_point when{};
  std::string why;
  for (int attempt = 0; attempt <= options_.retries; ++attempt) {
    pause(when);
    ++tries_;
    const io::HttpAnswer got = exchange(options_, options_.url, job.request);
    why = got.fault;
    if (got.fault.empty() && got.status == 200) {
      try {
        EndpointAnswer read = read_answer(got.body, options_.secret);
        const std::lock_guard lock(mutex_);
        failed_in_a_row_.clear();
        return read;
      } catch (const Error& error) {
        why = error.what();
        // Shows the server's message instead of invalid JSON.
        why.resize(std::min(why.size(), why.find("; last read")));
        why += server_message(got.body, options_.secret);
      }
    } else if (got.status != 0 && got.status != 200) {
      why = fmt::format("status {}{}", got.status, server_message(got.body, options_.secret));
      if (same_for_all(got.status)) {
        const std::lock_guard lock(mutex_);
        if (down_.empty()) down_ = fmt::format("'{}' answers {}", options_.url, why);
        throw EndpointDown(down_);
      }
      if (!passes(got.status))
        fail_clip(Cause::rejected, job.clip,
                  fmt::format("'{}' refuses it with {}", options_.url, why));
    }
    log_info("'{}', try {}: {}", options_.url, attempt + 1, why);
    const double wait = std::min(kLongestWait, options_.wait * std::pow(2, attempt));
    when = Clock::now() + seconds(wait * (0.75 + 0.5 * share));
    if (got.retry_after) {
      const std::lock_guard lock(mutex_);
      not_before_ =
          std::max(not_before_, Clock::now() + seconds(std::min(kLongestWait, *got.retry_after)));
    }
  }
  fail_clip(Cause::server, job.clip,
            fmt::format("'{}' gave no answer in {} tries, at last: {}", options_.url,
                        options_.retries + 1, why));
}

std::string request_with_seed(std::string request, int seed) {
  request.pop_back();
  return request + fmt::format(",\"seed\":{}}}", seed);
}

Json endpoint_config(const EndpointOptions& options) {
  Json config = {{"model", options.model},        {"prompt", options.prompt},
                 {"frames", options.frames},      {"side", options.side},
                 {"tokens", options.most_tokens}, {"temperature", options.temperature}};
  if (!options.also.list.empty()) config["also"] = options.also.to_json(options.temperature);
  if (options.send_schema) config["send_schema"] = true;
  return config;
}

}  // namespace vfm::columns
