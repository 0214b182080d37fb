// SPDX-License-Identifier: Apache-2.0
#include "io/object_server.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <sstream>

#include "base/crc32c.h"
#include "base/hash.h"
#include "io/remote/signature.h"

namespace vfm {
namespace {

std::string decoded(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  return plain;
}

/// Reads from a socket up to `end`, which is not returned. Returns nullopt if it is closed.
std::optional<std::string> read_until(int socket, std::string& held, const std::string& end) {
  for (;;) {
    if (const std::size_t at = held.find(end); at != held.npos) {
      std::string text = held.substr(0, at);
      held.erase(0, at + end.size());
      return text;
    }
    char bytes[65536];
    const ssize_t size = ::read(socket, bytes, sizeof bytes);
    if (size <= 0) return std::nullopt;
    held.append(bytes, static_cast<std::size_t>(size));
  }
}

std::optional<ServedRequest> read_request(int socket, std::string& held,
                                          const std::atomic<int>& pause) {
  const auto head = read_until(socket, held, "\r\n\r\n");
  if (!head) return std::nullopt;
  std::istringstream lines(*head);
  ServedRequest request;
  std::string target, line;
  lines >> request.method >> target;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    if (line.ends_with('\r')) line.pop_back();
    const std::size_t colon = line.find(':');
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    request.headers[name] =
        line.substr(std::min(line.find_first_not_of(' ', colon + 1), line.size()));
  }
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.path = decoded(target.substr(0, mark));
  std::istringstream query(target.substr(std::min(mark + 1, target.size())));
  for (std::string each; std::getline(query, each, '&');) {
    const std::size_t equals = std::min(each.find('='), each.size());
    request.query[decoded(each.substr(0, equals))] =
        decoded(each.substr(std::min(equals + 1, each.size())));
  }
  const auto length = request.headers.find("content-length");
  const std::size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
  while (held.size() < size) {
    char bytes[65536];
    const ssize_t count = ::read(socket, bytes, sizeof bytes);
    if (count <= 0) return std::nullopt;
    held.append(bytes, static_cast<std::size_t>(count));
    if (pause > 0) std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
  request.body = held.substr(0, size);
  held.erase(0, size);
  return request;
}

/// Returns whether the connection can go on.
bool send_answer(int socket, const ServedRequest& request, const ServedAnswer& answer) {
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " X\r\n";
  for (const auto& [name, value] : answer.headers)
    text += name + ": " + value + "\r\n";
  if (!answer.headers.contains("Content-Length"))
    text += "Content-Length: " + std::to_string(answer.body.size()) + "\r\n";
  text += "\r\n";
  if (request.method != "HEAD")
    text += answer.body.substr(0, answer.cut.value_or(answer.body.size()));
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  return !answer.cut;
}

/// The time of a server, in seconds after 2013-05-24 00:00:00.
std::string served_time(int seconds, const char* form) {
  const std::time_t time = 1369353600 + seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, form, &parts)};
}

}  // namespace

ServedAnswer served_error(int status, const std::string& code) {
  return {status, {}, "<Error><Code>" + code + "</Code><Message>so it is</Message></Error>", {}};
}

ObjectServer::ObjectServer() {
  ::setenv("AWS_ENDPOINT_URL_S3", url("").c_str(), 1);
  ::setenv("AWS_ACCESS_KEY_ID", "key", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  ::setenv("AWS_SESSION_TOKEN", "", 1);
  ::setenv("AWS_CONFIG_FILE", "/nonexistent/config", 1);
  ::setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials", 1);
  ::setenv("VFM_NET_SECONDS", "120", 1);
  threads_.emplace_back([this] { accept(); });
}

ObjectServer::~ObjectServer() {
  ::unsetenv("AWS_ENDPOINT_URL_S3");  // Other tests ask no server.
  listener_.shut_down();
  threads_[0].join();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_)
      ::shutdown(socket, SHUT_RDWR);
  }
  for (std::size_t i = 1; i < threads_.size(); ++i)
    threads_[i].join();
  for (const int socket : sockets_)
    ::close(socket);
}

std::string ObjectServer::new_bucket() {
  static std::atomic<int> made{0};
  return "s3://bucket-" + std::to_string(made++);
}

void ObjectServer::accept() {
  for (int socket = listener_.accept(); socket >= 0; socket = listener_.accept()) {
    ++connections_;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { serve(socket); });
  }
}

void ObjectServer::serve(int socket) {
  std::string held;
  for (;;) {
    const auto request = read_request(socket, held, pause);
    if (!request) break;
    int number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = static_cast<int>(requests_.size());
      requests_.push_back(*request);
    }
    std::optional<ServedAnswer> made = before ? before(*request, number) : std::nullopt;
    if (!made) {
      const std::lock_guard lock(mutex_);
      made = answer(*request);
    }
    if (after) after(*request, number, *made);
    if (made->status == 0 || !send_answer(socket, *request, *made)) break;  // 0: no answer
  }
  ::shutdown(socket, SHUT_RDWR);
}

void ObjectServer::put(const std::string& path, const std::string& contents) {
  const std::lock_guard lock(mutex_);
  keep(path, contents, {});
}

std::optional<std::string> ObjectServer::get(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(path);
  return found == objects_.end() ? std::nullopt : std::optional(found->second.contents);
}

std::vector<ServedRequest> ObjectServer::requests() {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int ObjectServer::count(const std::string& method) {
  const auto all = requests();
  return static_cast<int>(std::count_if(all.begin(), all.end(),
                                        [&](const auto& each) { return each.method == method; }));
}

int ObjectServer::uploads() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(uploads_.size());
}

std::vector<std::string> ObjectServer::upload_paths() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> paths;
  for (const auto& [id, upload] : uploads_)
    paths.push_back(upload.path);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> ObjectServer::object_paths() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> paths;
  for (const auto& [path, object] : objects_)
    paths.push_back(path);
  return paths;
}

void ObjectServer::keep(const std::string& path, std::string contents,
                        const std::map<std::string, std::string>& headers) {
  Object object;
  object.headers["ETag"] = "\"" + hash_hex(contents) + "\"";
  for (const auto& [name, value] : headers)
    if (name.starts_with("x-amz-meta-")) object.headers[name] = value;
  object.contents = std::move(contents);
  object.seconds = seconds_at_write;
  objects_[path] = std::move(object);
}

ServedAnswer ObjectServer::answer(const ServedRequest& request) {
  if (request.method == "PUT") return put(request);
  if (request.method == "POST") return post(request);
  if (request.method == "DELETE") {
    if (const auto id = request.query.find("uploadId"); id != request.query.end())
      uploads_.erase(id->second);
    else
      objects_.erase(request.path);
    return {204, {}, "", {}};
  }
  const bool bucket = request.path.find('/', 1) == std::string::npos;
  return bucket && request.path.starts_with("/bucket-") ? list(request) : get(request);
}

std::optional<ServedAnswer> ObjectServer::conflict(const ServedRequest& request) const {
  const auto object = objects_.find(request.path);
  const bool there = object != objects_.end();
  if (request.headers.contains("if-none-match") && there)
    return served_error(412, "PreconditionFailed");
  if (const auto match = request.headers.find("if-match"); match != request.headers.end()) {
    if (!there) return served_error(404, "NoSuchKey");
    if (object->second.headers.at("ETag") != match->second)
      return served_error(412, "PreconditionFailed");
  }
  return std::nullopt;
}

ServedAnswer ObjectServer::get(const ServedRequest& request) {
  const auto found = objects_.find(request.path);
  if (found == objects_.end()) return served_error(404, "NoSuchKey");
  if (const auto no = conflict(request)) return *no;
  ServedAnswer answer{200, found->second.headers, found->second.contents, {}};
  const auto range = request.headers.find("range");
  if (range != request.headers.end()) {
    std::size_t first = 0, last = 0;
    REQUIRE(std::sscanf(range->second.c_str(), "bytes=%zu-%zu", &first, &last) == 2);
    const std::size_t size = answer.body.size();
    if (first >= size) {
      ServedAnswer error = served_error(416, "InvalidRange");
      error.headers["Content-Range"] = "bytes */" + std::to_string(size);
      return error;
    }
    last = std::min(last, size - 1);
    answer.status = 206;
    answer.headers["Content-Range"] =
        "bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" + std::to_string(size);
    answer.body = answer.body.substr(first, last - first + 1);
  }
  return answer;
}

ServedAnswer ObjectServer::put(const ServedRequest& request) {
  if (const auto no = conflict(request)) return *no;
  if (const auto from = request.headers.find("x-amz-copy-source"); from != request.headers.end()) {
    const auto object = objects_.find(decoded(from->second));
    if (object == objects_.end()) return served_error(404, "NoSuchKey");
    objects_[request.path] = Object(object->second);
    return {200, {}, "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>", {}};
  }
  const auto sum = request.headers.find("x-amz-checksum-crc32c");
  if (sum != request.headers.end()) {
    const std::uint32_t crc = crc32c(0, request.body.data(), request.body.size());
    const std::string bytes{static_cast<char>(crc >> 24), static_cast<char>(crc >> 16),
                            static_cast<char>(crc >> 8), static_cast<char>(crc)};
    if (io::base64(bytes) != sum->second) return served_error(400, "BadDigest");
  }
  if (const auto id = request.query.find("uploadId"); id != request.query.end()) {
    const auto upload = uploads_.find(id->second);
    if (upload == uploads_.end()) return served_error(404, "NoSuchUpload");
    upload->second.parts[std::stoi(request.query.at("partNumber"))] = request.body;
    return {200, {{"ETag", "\"" + hash_hex(request.body) + "\""}}, "", {}};
  }
  keep(request.path, request.body, request.headers);
  return {200, {{"ETag", objects_[request.path].headers["ETag"]}}, "", {}};
}

ServedAnswer ObjectServer::post(const ServedRequest& request) {
  if (request.query.contains("uploads")) {
    const std::string id = "id" + std::to_string(kept_++);
    uploads_[id] = {request.path, request.headers, {}, seconds_at_write};
    return {200, {}, "<R><UploadId>" + id + "</UploadId></R>", {}};
  }
  const auto upload = uploads_.find(request.query.at("uploadId"));
  if (upload == uploads_.end()) return served_error(404, "NoSuchUpload");
  if (const auto no = conflict(request)) return *no;
  std::string whole;
  for (const auto& [number, part] : upload->second.parts)
    whole += part;
  keep(request.path, std::move(whole), upload->second.headers);
  uploads_.erase(upload);
  return {200, {}, "<R><ETag>" + objects_[request.path].headers["ETag"] + "</ETag></R>", {}};
}

ServedAnswer ObjectServer::list(const ServedRequest& request) {
  const std::string bucket = request.path + "/";
  ServedAnswer answer{
      200, {{"Date", served_time(seconds, "%a, %d %b %Y %H:%M:%S GMT")}}, "<R>", {}};
  if (request.query.contains("uploads")) {
    for (const auto& [id, upload] : uploads_)
      answer.body +=
          "<Upload><Key>" + upload.path.substr(bucket.size()) + "</Key><UploadId>" + id +
          "</UploadId><Initiated>" +
          served_time(upload.seconds, tells_upload_times ? "%Y-%m-%dT%H:%M:%S.000Z" : "?") +
          "</Initiated></Upload>";
    answer.body += "</R>";
    return answer;
  }
  const std::string prefix = request.query.at("prefix");
  const auto token = request.query.find("continuation-token");
  const std::string after_name = token == request.query.end() ? "" : token->second;
  std::map<std::string, std::string> found;
  for (const auto& [path, object] : objects_) {
    if (!path.starts_with(bucket + prefix)) continue;
    const std::string key = path.substr(bucket.size());
    const std::size_t slash = key.find('/', prefix.size());
    if (request.query.contains("delimiter") && slash != key.npos)
      found[key.substr(0, slash + 1)] =
          "<CommonPrefixes><Prefix>" + key.substr(0, slash + 1) + "</Prefix></CommonPrefixes>";
    else
      found[key] = "<Contents><Key>" + key + "</Key><Size>" +
                   std::to_string(object.contents.size()) + "</Size><LastModified>" +
                   served_time(object.seconds, "%Y-%m-%dT%H:%M:%S.000Z") +
                   "</LastModified></Contents>";
  }
  std::size_t shown = 0;
  std::string last;
  for (auto at = found.upper_bound(after_name); at != found.end(); ++at) {
    if (shown++ == page) {
      answer.body += "<IsTruncated>true</IsTruncated><NextContinuationToken>" + last +
                     "</NextContinuationToken>";
      break;
    }
    answer.body += at->second;
    last = at->first;
  }
  answer.body += "</R>";
  return answer;
}

}  // namespace vfm
