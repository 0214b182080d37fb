// A listening socket on this machine, for servers of tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

namespace vfm {

/// Listens on a free port of 127.0.0.1. Without accept(), connections wait.
class Loopback {
 public:
  explicit Loopback(int waiting = 16) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(socket_, any, size) == 0);
    REQUIRE(::listen(socket_, waiting) == 0);
    REQUIRE(::getsockname(socket_, any, &size) == 0);
    port_ = ntohs(address.sin_port);
  }
  ~Loopback() { ::close(socket_); }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  /// Waits for a connection, and returns its descriptor. Returns -1 after shut_down().
  int accept() const { return ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC); }
  void shut_down() const { ::shutdown(socket_, SHUT_RDWR); }
  /// Returns "http://127.0.0.1:PORT" and `path`.
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }

 private:
  int socket_;
  int port_ = 0;
};

}  // namespace vfm
