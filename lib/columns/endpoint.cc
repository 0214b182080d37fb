// SPDX-License-Identifier: Apache-2.0
#include "columns/endpoint.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/http.h"
#include "text/unicode.h"

namespace vfm::columns {
namespace {

constexpr std::size_t kMostInARow = 3;  ///< clips that fail one after the other
constexpr double kLongestWait = 300;    ///< seconds, also if the server asks for more
constexpr std::size_t kMessage = 300;   ///< characters of what a server says in an error
/// Shorter keys are no secret, but what a server without keys is given ("none"): words of captions.
constexpr std::size_t kShortestKey = 8;

std::string without(std::string text, const std::string& secret) {
  if (secret.empty()) return text;
  for (std::size_t at = 0; (at = text.find(secret, at)) != text.npos;)
    text.replace(at, secret.size(), "[key]");
  return text;
}

/// What a server says in an answer that is none: {"error": {"message": "..."}}, or all of it. The
/// secret is looked for in what is meant, not in JSON's escapes, and before anything is cut.
std::string server_message(const std::string& body, const std::string& secret) {
  std::string said = body;
  try {
    const Json json = parse_json(body, "the answer");
    const Json* found = json.is_object() && json.contains("error") ? &json["error"] : &json;
    if (found->is_object() && found->contains("message")) found = &(*found)["message"];
    said = found->is_string() ? found->get<std::string>() : dump_json(*found);
  } catch (const Error&) {
  }
  said = without(std::move(said), secret).substr(0, 4 * kMessage);
  said = text::first_characters(text::clean_line(text::valid_utf8(said)), kMessage);
  return said.empty() ? said : ": " + said;
}

std::int64_t count_in(const Json& usage, const char* name) {
  const auto found = usage.find(name);
  const bool fits = found != usage.end() && found->is_number_unsigned();
  return fits ? static_cast<std::int64_t>(
                    std::min<std::uint64_t>(found->get<std::uint64_t>(), std::uint64_t{1} << 40))
              : 0;
}

/// The text of choices[0].message, which is a string or a list of parts. Throws Error if the answer
/// is not of that form: another try may have a better one.
EndpointAnswer read_answer(const std::string& body, const std::string& secret) {
  const Json json = parse_json(body, "the answer");
  const auto choices = json.is_object() ? json.find("choices") : json.end();
  if (!json.is_object() || choices == json.end() || !choices->is_array() || choices->empty() ||
      !(*choices)[0].is_object() || !(*choices)[0].contains("message") ||
      !(*choices)[0]["message"].is_object())
    fail("the answer has no choices[0].message");
  const Json& message = (*choices)[0]["message"];
  const auto content = message.find("content");
  EndpointAnswer answer;
  const Json reason = (*choices)[0].value("finish_reason", Json());
  answer.cut = reason == "length";
  if (content != message.end() && content->is_string()) {
    answer.text = content->get<std::string>();
  } else if (content != message.end() && content->is_array()) {
    for (const Json& part : *content)
      if (part.is_object() && part.contains("text") && part["text"].is_string())
        answer.text += part["text"].get<std::string>();
  } else if (content != message.end() && !content->is_null()) {
    fail("the answer's content is no text");
  }
  if (json.contains("usage") && json["usage"].is_object()) {
    answer.prompt_tokens = count_in(json["usage"], "prompt_tokens");
    answer.completion_tokens = count_in(json["usage"], "completion_tokens");
  }
  if (secret.size() >= kShortestKey) answer.text = without(std::move(answer.text), secret);
  answer.text = text::clean_line(answer.text);
  return answer;
}

bool passes(int status) {
  return status == 0 || status == 408 || status == 409 || status == 425 || status == 429 ||
         status >= 500;
}

bool same_for_all(int status) {
  return (status >= 300 && status < 400) || (status >= 401 && status <= 405);
}

}  // namespace

Endpoint::Endpoint(EndpointOptions options) : options_(std::move(options)) {
  if (!io::have_http())
    fail_usage("this build has no libcurl, so no server can be asked; build with -Dcurl=enabled");
  io::check_http_url(options_.url);
  if (options_.model.empty()) fail_usage("the server's model has no name (--endpoint-model)");
  while (options_.url.ends_with('/'))
    options_.url.pop_back();
  if (!options_.url.ends_with("/chat/completions")) options_.url += "/chat/completions";
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

void Endpoint::note_failure(const std::string& clip, const std::string& why) {
  const std::lock_guard lock(mutex_);
  failed_in_a_row_.insert(clip);
  if (failed_in_a_row_.size() < kMostInARow) return;
  if (down_.empty())
    down_ =
        fmt::format("{} clips failed one after the other, no more is asked: {}", kMostInARow, why);
  throw EndpointDown(down_);
}

/// Waits until then, and until the server's own time. Throws Stopped; EndpointDown.
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
  const auto seconds = [](double count) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
  };
  // Requests that failed together shall not come back together.
  const double share =
      static_cast<double>(std::stoul(hash_hex(job.request).substr(0, 4), nullptr, 16)) / 65536;
  Clock::time_point when{};
  std::string why;
  for (int attempt = 0; attempt <= options_.retries; ++attempt) {
    pause(when);
    ++tries_;
    const io::HttpAnswer got = io::http_post({.url = options_.url,
                                              .body = job.request,
                                              .secret = options_.secret,
                                              .connect_seconds = std::min(30.0, options_.seconds),
                                              .seconds = options_.seconds});
    why = got.fault;
    if (got.fault.empty() && got.status == 200) {
      try {
        EndpointAnswer read = read_answer(got.body, options_.secret);
        const std::lock_guard lock(mutex_);
        failed_in_a_row_.clear();
        return read;
      } catch (const Error& error) {
        why = error.what();
        // Not the bytes that are no JSON.
        why.resize(std::min(why.size(), why.find("; last read")));
      }
    } else if (got.status != 0 && got.status != 200) {
      why = fmt::format("status {}{}", got.status, server_message(got.body, options_.secret));
      if (same_for_all(got.status)) {
        const std::lock_guard lock(mutex_);
        if (down_.empty()) down_ = fmt::format("'{}' answers {}", options_.url, why);
        throw EndpointDown(down_);
      }
      if (!passes(got.status)) fail("'{}' refuses it with {}", options_.url, why);
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
  why = fmt::format("'{}' gave no answer in {} tries, at last: {}", options_.url,
                    options_.retries + 1, why);
  note_failure(job.clip, why);
  fail("{}", why);
}

}  // namespace vfm::columns
