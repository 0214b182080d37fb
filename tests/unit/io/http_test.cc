// What ends a request that is under way.
// SPDX-License-Identifier: Apache-2.0
#include "io/http.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/run_end.h"
#include "support/loopback.h"

using namespace vfm;

namespace {

/// A server on this machine that never answers.
class SilentServer {
 public:
  /// Waits for a request, of which the first bytes are read.
  int accept() const {
    const int one = listener_.accept();
    char byte;
    return one >= 0 && ::read(one, &byte, 1) == 1 ? one : -1;
  }
  std::string url() const { return listener_.url("/"); }

 private:
  Loopback listener_{1};
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
