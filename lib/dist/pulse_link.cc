// SPDX-License-Identifier: Apache-2.0
#include "dist/pulse_link.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace vfm::dist {
namespace {

// Ranks of one run are one program, so the numbers are as this machine has them.
constexpr std::size_t kHead = 9;  // length, letter, rank

}  // namespace

PulseLink::PulseLink(int fd) : fd_(fd) {
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
  const int one = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

PulseLink::~PulseLink() {
  if (fd_ >= 0) ::close(fd_);
}

PulseLink::PulseLink(PulseLink&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      broken_(other.broken_),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)) {}

void PulseLink::send(char letter, int rank, std::string_view text) {
  text = text.substr(0, kMostText - 1);
  const auto length = static_cast<std::uint32_t>(text.size());
  const auto number = static_cast<std::int32_t>(rank);
  std::array<char, kHead> head;
  std::memcpy(head.data(), &length, 4);
  head[4] = letter;
  std::memcpy(head.data() + 5, &number, 4);
  out_.append(head.data(), head.size());
  out_.append(text);
  flush();
}

void PulseLink::flush() {
  while (!out_.empty()) {
    const ssize_t sent = ::send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) broken_ = true;
    if (sent <= 0) return;  // receive() finds out about an end
    out_.erase(0, static_cast<std::size_t>(sent));
  }
}

bool PulseLink::delivered() {
  flush();
  tcp_info info{};
  socklen_t size = sizeof info;
  const bool closed =
      ::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_CLOSE;
  int left = 0;  // that the other end has not acknowledged
  return broken_ || closed || (out_.empty() && (::ioctl(fd_, SIOCOUTQ, &left) != 0 || left == 0));
}

bool PulseLink::receive(std::vector<Frame>& frames, bool& heard) {
  bool open = true;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      open = false;
      break;
    }
    heard = true;
    in_.append(buffer.data(), static_cast<std::size_t>(got));
  }
  std::size_t at = 0;
  while (in_.size() - at >= kHead) {
    std::uint32_t length = 0;
    std::int32_t rank = 0;
    std::memcpy(&length, in_.data() + at, 4);
    std::memcpy(&rank, in_.data() + at + 5, 4);
    if (length >= kMostText) return false;
    if (in_.size() - at < kHead + length) break;
    frames.push_back({in_[at + 4], rank, in_.substr(at + kHead, length)});
    at += kHead + length;
  }
  in_.erase(0, at);
  return open;
}

std::optional<bool> PulseLink::acknowledged(double seconds) const {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  return info.tcpi_last_ack_recv < seconds * 1000;
}

}  // namespace vfm::dist
