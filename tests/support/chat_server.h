// A server of chat completions on this machine, which answers as a test tells it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "support/loopback.h"

namespace vfm {

struct ChatRequest {
  std::string path, headers, body;
  std::chrono::steady_clock::time_point at{};

  Json json() const { return parse_json(body, "the request"); }
  /// The words of the question.
  std::string prompt() const { return json()["messages"][0]["content"].back()["text"]; }
};

struct ChatReply {
  int status = 200;
  std::string body = {};
  std::size_t missing = 0;  ///< bytes of the body that are promised and do not come
  bool closed = false;      ///< the connection is closed without an answer
};

/// An answer of 100 and 10 tokens.
inline ChatReply chat_says(const std::string& text, const std::string& reason = "stop") {
  return {200,
          dump_json({{"choices", {{{"message", {{"content", text}}}, {"finish_reason", reason}}}},
                     {"usage", {{"prompt_tokens", 100}, {"completion_tokens", 10}}}})};
}
inline ChatReply chat_fails(int status, const std::string& message = "no") {
  return {status, dump_json({{"error", {{"message", message}}}})};
}

class ChatServer {
 public:
  /// `answer` is called for each request, one after the other, with its number from 0.
  using Answer = std::function<ChatReply(const ChatRequest& request, std::size_t number)>;

  explicit ChatServer(Answer answer) : answer_(std::move(answer)), thread_([this] { serve(); }) {}
  /// Replies N times with reply N, and then with the last.
  explicit ChatServer(std::vector<ChatReply> replies)
      : ChatServer([replies = std::move(replies)](const ChatRequest&, std::size_t number) {
          return replies[std::min(number, replies.size() - 1)];
        }) {}
  ~ChatServer() {
    listener_.shut_down();
    thread_.join();
  }
  ChatServer(const ChatServer&) = delete;
  ChatServer& operator=(const ChatServer&) = delete;

  std::string url() const { return listener_.url("/v1"); }
  std::vector<ChatRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::size_t asked() const { return requests().size(); }

 private:
  void serve() {
    for (int one; (one = listener_.accept()) >= 0; ::close(one))
      talk(one);
  }

  void talk(int one) {
    std::string got;
    std::size_t head = 0, length = 0;
    char piece[65536];
    while (head == 0 || got.size() < head + length) {
      const ssize_t more = ::read(one, piece, sizeof piece);
      if (more <= 0) return;
      got.append(piece, static_cast<std::size_t>(more));
      const std::size_t end = got.find("\r\n\r\n");
      if (head != 0 || end == got.npos) continue;
      head = end + 4;
      const std::size_t at = got.find("Content-Length: ");
      if (at < end) length = std::stoul(got.substr(at + 16));
    }
    const std::size_t from = got.find(' ') + 1;
    const ChatRequest request{got.substr(from, got.find(' ', from) - from), got.substr(0, head),
                              got.substr(head), std::chrono::steady_clock::now()};
    std::size_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = requests_.size();
      requests_.push_back(request);
    }
    const ChatReply reply = answer_(request, number);
    if (reply.closed) return;
    std::string bytes = "HTTP/1.1 " + std::to_string(reply.status) +
                        " x\r\nContent-Length: " + std::to_string(reply.body.size()) +
                        "\r\nConnection: close\r\n\r\n" + reply.body;
    bytes.resize(bytes.size() - reply.missing);
    [[maybe_unused]] const ssize_t sent = ::send(one, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  Answer answer_;
  Loopback listener_;
  mutable std::mutex mutex_;  // guards requests_
  std::vector<ChatRequest> requests_;
  std::thread thread_;  // last: it uses all others
};

}  // namespace vfm
