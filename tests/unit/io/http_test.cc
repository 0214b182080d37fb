// What ends a request that is under way.
// SPDX-License-Identifier: Apache-2.0
#include "io/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/run_end.h"

using namespace vfm;

namespace {

/// A server on this machine that never answers.
class SilentServer {
 public:
  SilentServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener_, any, size) == 0);
    REQUIRE(::listen(listener_, 1) == 0);
    REQUIRE(::getsockname(listener_, any, &size) == 0);
    port_ = ntohs(address.sin_port);
  }
  ~SilentServer() { ::close(listener_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  /// Waits for a request, of which the first bytes are read.
  int accept() const {
    const int one = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    char byte;
    return one >= 0 && ::read(one, &byte, 1) == 1 ? one : -1;
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/"; }

 private:
  int listener_;
  int port_ = 0;
};

}  // namespace

TEST_CASE("a run that ends takes no answer of a server more") {
  if (!io::have_http()) return;
  const SilentServer server;
  std::thread ends([&] {
    const int request = server.accept();
    end_run("there is no room");
    // As long as the other side waits for an answer.
    for (char more[256]; request >= 0 && ::read(request, more, sizeof more) > 0;)
      continue;
    ::close(request);
  });
  CHECK_THROWS_AS(io::http_exchange({.url = server.url(), .body = "{}", .seconds = 3600}), Stopped);
  ends.join();
  forget_run_end();
}
