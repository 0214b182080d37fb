// SPDX-License-Identifier: Apache-2.0
#include "io/remote/requests.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/log.h"
#include "io/http.h"
#include "io/remote/retry.h"
#include "io/remote/signature.h"

namespace vfm::io {
namespace {

double seconds_for(const ObjectRequest& request) {
  return request.method == "GET" || request.method == "HEAD" ? read_seconds() : net_seconds();
}

thread_local const std::atomic<bool>* t_cancelled = nullptr;

const std::atomic<bool>* cancelled_of(const ObjectRequest& request) {
  return request.cancelled ? request.cancelled : t_cancelled;
}

bool may_retry(const ObjectRequest& request, const ObjectAnswer& answer) {
  // 400 with RequestTimeout: a body came too slowly; with the others: it came damaged.
  static constexpr std::array kPassing{"BadDigest",
                                       "ConditionalRequestConflict",
                                       "InternalError",
                                       "OperationAborted",
                                       "RequestTimeout",
                                       "SlowDown",
                                       "XAmzContentChecksumMismatch",
                                       "XAmzContentSHA256Mismatch"};
  if (!answer.fault.empty()) return !answer.hopeless;
  if (answer.status == 409 && request.retry_conflict) return true;
  return may_succeed_later(answer.status) ||
         std::find(kPassing.begin(), kPassing.end(), answer.error.code) != kPassing.end();
}

/// What the server says, without what else an answer's body has.
std::string said(const ObjectAnswer& answer) {
  if (!answer.fault.empty() && answer.status < 300) return answer.fault;
  std::string text = fmt::format("status {}", answer.status);
  if (!answer.error.code.empty()) text += " " + answer.error.code;
  if (!answer.error.message.empty()) text += ": " + answer.error.message;
  return text;
}

/// Who waits for a server that does not answer is told so after some tries.
void note_try(const std::string& name, const ObjectAnswer& answer) {
  constexpr int kToldAt = 5;
  log_at(answer.tries == kToldAt ? LogLevel::warning : LogLevel::info, "'{}', try {}: {}", name,
         answer.tries, said(answer));
}

/// Reads "bytes 0-9/100". Returns false for another text.
bool read_content_range(std::string_view text, std::uint64_t& first, std::uint64_t& last) {
  if (!text.starts_with("bytes ")) return false;
  const char* const end = text.data() + text.size();
  const auto [dash, bad] = std::from_chars(text.data() + 6, end, first);
  if (bad != std::errc() || dash == end || *dash != '-') return false;
  return std::from_chars(dash + 1, end, last).ec == std::errc();
}

/// Why the answer does not have the range's bytes from `from` on, or "".
std::string wrong_range(const WebAnswer& answer, const ObjectRange& range, std::uint64_t from) {
  const std::string version = version_of_etag(answer.header("etag"));
  if (!range.version.empty() && !version.empty() && version != range.version) return "changed";
  if (answer.status == 200 && from == 0 && range.size == range.object_bytes) return "";
  std::uint64_t first = 0, last = 0;
  if (answer.status == 206 && read_content_range(answer.header("content-range"), first, last) &&
      first == from && last == range.offset + range.size - 1)
    return "";
  return "other";
}

struct Outcome {
  std::string why, next;
  Cause cause;
};

Outcome outcome_of(const ObjectAnswer& answer) {
  const std::string text = said(answer);
  if (answer.error.code == "NoSuchBucket") return {"no such bucket", "", Cause::open};
  if (answer.error.code == "NoSuchUpload")
    return {"another program or a rule of the bucket has ended its upload", "; write it again",
            Cause::open};
  if (answer.status == 404 || answer.status == 410) return {"no such object", "", Cause::open};
  if (answer.status == 401 || answer.status == 403)
    return {"the server refuses it (" + text + ")",
            "; check the credentials and their rights (vfm-storage(7))", Cause::open};
  if (answer.status >= 300 && answer.status < 400 && answer.status != 304)
    return {"the server sends to another address (" + text + "), which is not followed",
            "; give the address or region where it is", Cause::open};
  if (answer.hopeless) return {text, "", Cause::open};
  if (!answer.fault.empty() || may_succeed_later(answer.status) || answer.status == 409)
    return {fmt::format("{} ({} {})", text, answer.tries, answer.tries == 1 ? "try" : "tries"),
            "; check the network and the server, then give the same command again", Cause::disk};
  return {text, "", Cause::open};
}

struct Endpoint3 {
  std::string scheme, host, path;
};

Endpoint3 parts_of_endpoint(const std::string& endpoint) {
  const std::size_t begin = endpoint.find("://") + 3;
  const std::size_t slash = std::min(endpoint.find('/', begin), endpoint.size());
  Endpoint3 parts{endpoint.substr(0, begin), endpoint.substr(begin, slash - begin),
                  endpoint.substr(slash)};
  // As libcurl sends it.
  const std::string usual = parts.scheme == "https://" ? ":443" : ":80";
  if (parts.host.ends_with(usual)) parts.host.resize(parts.host.size() - usual.size());
  while (parts.path.ends_with('/'))
    parts.path.pop_back();
  return parts;
}

bool is_host_label(const std::string& bucket) {
  return bucket.size() <= 63 && std::all_of(bucket.begin(), bucket.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

bool is_region(const std::string& text) {
  return !text.empty() && is_host_label(text);
}

}  // namespace

CancelledBy::CancelledBy(const std::atomic<bool>& cancelled) {
  t_cancelled = &cancelled;
}

CancelledBy::~CancelledBy() {
  t_cancelled = nullptr;
}

ObjectAnswer Requester::exchange(const ObjectRequest& request, WebRequest& sent) {
  const double most = seconds_for(request);
  sent.method = request.method;
  sent.body = request.body;
  sent.sink = request.sink;
  sent.most_bytes = request.most_bytes;
  sent.cancelled = cancelled_of(request);
  sent.connect_seconds = std::clamp(most / 4, 0.25, 20.0);
  sent.silent_seconds = request.long_work ? most : std::clamp(most / 4, 0.25, 60.0);
  sent.answer_seconds = most / 2;
  if (request.once) {
    sent.despite_stop = true;
    sent.seconds = 5;
  }
  ObjectAnswer answer;
  static_cast<WebAnswer&>(answer) = session_.exchange(sent);
  // A copy and the end of an upload may say 200 and then <Error>.
  const bool may_fail_late = request.long_work && answer.status == 200 && !answer.body.empty();
  if (answer.status >= 300 || may_fail_late) answer.error = read_answer_error(answer.body);
  if (may_fail_late && !answer.error.code.empty()) {
    const bool later = answer.error.code == "InternalError" || answer.error.code == "SlowDown" ||
                       answer.error.code == "ServiceUnavailable";
    answer.status = later ? 503 : answer.error.code == "PreconditionFailed" ? 412 : 400;
  }
  return answer;
}

ObjectAnswer Requester::send(const ObjectRequest& request) {
  Retry retry(seconds_for(request), cancelled_of(request));
  for (;;) {
    ObjectAnswer answer = try_once(request);
    answer.tries = retry.tries();
    if (!may_retry(request, answer) || request.once) return answer;
    note_try(shown(request.key), answer);
    // A try that sent much was no wait.
    if (answer.tries == 1 && request.body.size() > (std::size_t{1} << 20)) retry.progress();
    if (!retry.wait(answer.retry_after)) return answer;
  }
}

std::optional<WholeObject> Requester::read(const std::string& key, const std::string& address,
                                           std::uint64_t most) {
  WholeObject object;
  bool too_large = false;
  WebSink sink;
  sink.begin = [&](const WebAnswer& answer) {
    object = {"", version_of_etag(answer.header("etag"))};
    return true;
  };
  sink.take = [&](std::span<const char> bytes) {
    too_large = object.contents.size() + bytes.size() > most;
    if (!too_large) object.contents.append(bytes.data(), bytes.size());
    return !too_large;
  };
  ObjectRequest request;
  request.key = key;
  request.sink = &sink;
  const ObjectAnswer answer = send(request);
  if (too_large) fail_as(Cause::limit, "'{}' has more than {} bytes", address, most);
  const bool absent = answer.status == 404 || answer.status == 410;
  if (absent && answer.error.code != "NoSuchBucket") return std::nullopt;
  if (!answer.succeeded()) fail_read("open", address, answer);
  return object;
}

void Requester::fetch(const ObjectRange& range,
                      const std::function<void(std::span<const char>)>& take,
                      const std::atomic<bool>* cancelled) {
  std::uint64_t done = 0;
  std::string wrong;
  WebSink sink;
  sink.begin = [&](const WebAnswer& answer) {
    wrong = wrong_range(answer, range, range.offset + done);
    return wrong.empty();
  };
  sink.take = [&](std::span<const char> bytes) {
    const std::uint64_t left = range.size - done;
    bytes = bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left)));
    take(bytes);
    done += bytes.size();
    return true;
  };
  ObjectRequest request;
  request.key = range.key;
  request.sink = &sink;
  request.cancelled = cancelled;
  if (signs() && !range.version.empty()) request.headers["if-match"] = "\"" + range.version + "\"";
  Retry retry(read_seconds(), cancelled);
  while (done < range.size) {
    const std::uint64_t before = done;
    request.headers["range"] =
        fmt::format("bytes={}-{}", range.offset + done, range.offset + range.size - 1);
    ObjectAnswer answer = try_once(request);
    answer.tries = retry.tries();
    if (done == range.size) return;
    if (wrong == "changed" || answer.status == 412 || answer.status == 416)
      fail_as(Cause::disk, "'{}' has changed while it was read; read it again", range.address);
    if (wrong == "other")
      fail_as(Cause::answer, "cannot read '{}': the server sent other bytes than it was asked for",
              range.address);
    if (answer.succeeded()) answer.fault = "the answer is too short";
    if (done > before) retry.progress();
    if (!may_retry(request, answer)) fail_read("read", range.address, answer);
    note_try(range.address, answer);
    if (!retry.wait(answer.retry_after)) fail_read("read", range.address, answer);
  }
}

ObjectAnswer WebRequester::try_once(const ObjectRequest& request) {
  WebRequest sent;
  sent.url = request.key;
  static const std::string ca_file = variable("AWS_CA_BUNDLE").value_or("");
  sent.ca_file = ca_file;
  for (const auto& [name, value] : request.headers)
    sent.headers.push_back(name + ": " + value);
  return exchange(request, sent);
}

S3Requester::S3Requester(S3Place place, std::string bucket, std::string shown_as,
                         std::string shown_base)
    : place_(std::move(place)),
      bucket_(std::move(bucket)),
      shown_as_(std::move(shown_as)),
      shown_base_(std::move(shown_base)),
      region_(place_.region) {
  if (!place_.endpoint.empty()) check_http_url(place_.endpoint);
  if (!is_region(region_)) fail_usage("'{}' is no region of AWS", region_);
  if (place_.credentials) place_.credentials->check();
}

bool S3Requester::signs_bodies() const {
  return place_.endpoint.starts_with("http://") && place_.credentials;
}

std::string S3Requester::shown(const std::string& key) const {
  if (!shown_as_.empty() && key.starts_with(shown_base_))
    return shown_as_ + key.substr(shown_base_.size());
  return "s3://" + bucket_ + "/" + key;
}

std::string S3Requester::name() const {
  return (place_.endpoint.empty() ? "AWS" : place_.endpoint) + ", bucket " + bucket_;
}

S3Requester::Where S3Requester::where(const std::string& region) const {
  const std::string domain = region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
  const bool aws = place_.endpoint.empty();
  const Endpoint3 server =
      parts_of_endpoint(aws ? "https://s3." + region + domain : place_.endpoint);
  const bool in_path = place_.path_style.value_or(!aws || !is_host_label(bucket_));
  const std::string host = in_path ? server.host : bucket_ + "." + server.host;
  return {server.scheme + host, host, in_path ? server.path + "/" + bucket_ : server.path};
}

WebRequest S3Requester::prepare(const ObjectRequest& request,
                                const std::optional<Credentials>& keys) {
  std::string region;
  double now = 0;
  {
    const std::lock_guard lock(mutex_);
    region = region_;
    now = unix_seconds() + clock_ahead_;
  }
  const Where place = where(region);
  SignedParts parts;
  parts.method = request.method;
  parts.path = place.path;
  if (!request.key.empty() || place.path.empty())
    parts.path += "/" + percent_encode(request.key, true);
  parts.query = request.query;
  parts.headers = request.headers;
  parts.headers["host"] = place.host;
  std::string authorized;
  if (keys) {
    const bool open = signs_bodies() || request.body.empty();
    if (!open)
      parts.payload = kUnsignedPayload;
    else
      parts.payload = request.body_hash.empty() ? sha256_hex(request.body) : request.body_hash;
    const std::string time = signing_time(now);
    parts.headers["x-amz-date"] = time;
    parts.headers["x-amz-content-sha256"] = parts.payload;
    if (!keys->token.empty()) parts.headers["x-amz-security-token"] = keys->token;
    authorized = authorization(parts, {keys->key_id, keys->secret, region}, time);
  }
  WebRequest sent;
  sent.url = place.base + parts.path;
  if (!parts.query.empty()) sent.url += "?" + encode_query(parts.query);
  sent.ca_file = place_.ca_file;
  for (const auto& [name, value] : parts.headers)
    sent.headers.push_back(name + ": " + value);
  if (keys) sent.headers.push_back("Authorization: " + authorized);
  return sent;
}

bool S3Requester::take_region(const ObjectAnswer& answer) {
  std::string region = answer.header("x-amz-bucket-region");
  if (region.empty()) region = answer.error.region;
  const bool elsewhere = answer.status == 301 || answer.status == 307 || answer.status == 400;
  const std::lock_guard lock(mutex_);
  if (!elsewhere || !is_region(region) || region == region_) return false;
  log_info("bucket '{}' is in region '{}'", bucket_, region);
  region_ = region;
  return true;
}

bool S3Requester::take_clock(const ObjectAnswer& answer, bool bodyless) {
  const bool told = answer.error.code == "RequestTimeTooSkewed";
  if (answer.status != 403 || !(told || bodyless)) return false;
  const double theirs = parse_answer_time(answer.header("date"));
  const std::lock_guard lock(mutex_);
  const double ours = unix_seconds();
  // Servers allow 15 minutes.
  if (theirs == 0 || std::abs(theirs - ours - clock_ahead_) < (told ? 60 : 600)) return false;
  log_warning(
      "the clocks of this machine and of the server of bucket '{}' differ by {:.0f} s; the "
      "server's is used",
      bucket_, std::abs(theirs - ours));
  clock_ahead_ = theirs - ours;
  return true;
}

ObjectAnswer S3Requester::try_once(const ObjectRequest& request) {
  static constexpr std::array kExpired{"ExpiredToken", "InvalidToken", "TokenRefreshRequired",
                                       "RequestExpired", "InvalidAccessKeyId"};
  bool moved = false, skewed = false, renewed = false;
  for (;;) {
    std::optional<Credentials> keys;
    if (place_.credentials) keys = place_.credentials->get();
    WebRequest sent = prepare(request, keys);
    ObjectAnswer answer = exchange(request, sent);
    if (answer.status < 300 || !answer.fault.empty()) return answer;
    const bool bodyless = request.method == "HEAD";
    if (!moved && take_region(answer)) {
      moved = true;
    } else if (!skewed && take_clock(answer, bodyless)) {
      skewed = true;
    } else if (!renewed && keys &&
               (std::find(kExpired.begin(), kExpired.end(), answer.error.code) != kExpired.end() ||
                (bodyless && !keys->token.empty() &&
                 (answer.status == 400 || answer.status == 403)))) {
      renewed = true;
      place_.credentials->forget(*keys);
    } else {
      return answer;
    }
  }
}

void fail_read(std::string_view verb, const std::string& address, const ObjectAnswer& answer) {
  const Outcome outcome = outcome_of(answer);
  fail_as(outcome.cause, "cannot {} '{}': {}{}", verb, address, outcome.why, outcome.next);
}

void fail_write(std::string_view verb, const std::string& address, const ObjectAnswer& answer) {
  static constexpr std::array kFull{"QuotaExceeded", "InsufficientStorage", "XMinioStorageFull",
                                    "XMinioAdminBucketQuotaExceeded", "EntityTooLargeForQuota"};
  const Outcome outcome = outcome_of(answer);
  if (answer.status == 507 ||
      std::find(kFull.begin(), kFull.end(), answer.error.code) != kFull.end())
    fail_output(ENOSPC, "cannot {} '{}': {}", verb, address, outcome.why);
  fail_as(Cause::disk, "cannot {} '{}': {}{}", verb, address, outcome.why, outcome.next);
}

}  // namespace vfm::io
