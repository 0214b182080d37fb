// SPDX-License-Identifier: Apache-2.0
#include "dist/pulse_dial.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../support/heard_log.h"
#include "../support/loopback.h"
#include "../support/temporary_folder.h"
#include "base/json.h"
#include "base/log.h"
#include "dist/pulse_thread.h"
#include "io/file.h"
#include "io/folder.h"

using namespace vfm::dist;

namespace {

/// One end, and what it made.
struct DialEnd {
  DialEnd(int rank, const PulseToken& token)
      : dial(rank, token, 10, [this](int other, int fd, const std::string&) { made[other] = fd; }) {
  }
  ~DialEnd() {
    for (const auto& [rank, fd] : made)
      ::close(fd);
  }
  std::map<int, int> made;
  PulseDial dial;
};

void dial_until(const std::vector<DialEnd*>& ends, const std::function<bool()>& done) {
  for (int turn = 0; turn < 2000 && !done(); ++turn) {
    for (DialEnd* end : ends)
      end->dial.turn(0.001);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

PulsePlan plan_of_one() {
  PulsePlan plan;
  plan.ranks = {{"a", 10, 0}};
  plan.ports = {0};
  return plan;
}

/// The status of a process that does this, since the end of a run ends the process; -1 if it has
/// not ended after these seconds.
int status_of(double seconds, const std::function<void()>& act) {
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    act();
    std::_Exit(100);
  }
  int status = 0;
  for (double waited = 0; ::waitpid(pid, &status, WNOHANG) == 0; waited += 0.02) {
    if (waited > seconds) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

}  // namespace

TEST_CASE("pulse thread: a run ends although nobody takes its last message") {
  const int status = status_of(20, [] {
    vfm::set_log_sink([](vfm::LogLevel, std::string_view) { ::pause(); }, vfm::LogLevel::error);
    FlightRecorder recorder;
    PulseThread thread(plan_of_one(), recorder);
    thread.give_up({.kind = "stuck", .text = "a rank is stuck"});
  });
  CHECK(status == kLostStatus);
}

TEST_CASE("pulse thread: who gives up after the goodbye ends, and waits for nobody") {
  const int status = status_of(10, [] {
    FlightRecorder recorder;
    PulseThread thread(plan_of_one(), recorder);
    thread.leave("");
    thread.give_up({.kind = "stuck", .text = "too late"});
  });
  CHECK(status == kLostStatus);
}

TEST_CASE("pulse thread: a rank that was silent writes no record, and others do") {
  const vfm::TemporaryFolder folder;
  for (const char* kind : {"silent", "ended"}) {
    const int status = status_of(20, [&] {
      FlightRecorder recorder;
      PulseThread thread(plan_of_one(), recorder);
      thread.record_to(folder / kind);
      thread.give_up({.kind = kind, .rank = 0});
    });
    CHECK(status == kLostStatus);
  }
  CHECK_FALSE(vfm::io::path_exists(folder / "silent"));
  for (const char* name : {"/rank-00000.json", "/run.json"}) {
    const vfm::Json json = vfm::parse_json(vfm::io::read_file(folder / "ended" + name), name);
    CHECK(json["start"].get<std::string>().size() == 16);
  }
}

TEST_CASE("pulse dial: children reach their parent over the first address that answers") {
  const PulseToken token = draw_pulse_token();
  CHECK(token != draw_pulse_token());
  const PulseListener listener = listen_for_pulse(true, 4);
  REQUIRE(listener.fd >= 0);
  DialEnd parent(0, token), first(3, token), second(5, token);
  parent.dial.await(listener, {3, 5});
  first.dial.call(0, {"127.0.0.1", "not an address", "127.0.0.2"}, listener.port);
  second.dial.call(0, own_addresses(), listener.port);
  dial_until({&parent, &first, &second}, [&] { return parent.dial.done(); });
  CHECK(parent.dial.missing().empty());
  REQUIRE(parent.made.size() == 2);
  REQUIRE(first.made.size() == 1);
  // It is the same connection at both ends.
  CHECK(::send(first.made[0], "x", 1, 0) == 1);
  char got = 0;
  pollfd readable{parent.made[3], POLLIN, 0};
  CHECK(::poll(&readable, 1, 10000) == 1);
  CHECK(::recv(parent.made[3], &got, 1, 0) == 1);
  CHECK(got == 'x');
}

TEST_CASE("pulse dial: who has not the token is nobody, and who does not come is missing") {
  PulseToken token = draw_pulse_token();
  const PulseListener listener = listen_for_pulse(false, 4);
  DialEnd parent(0, token), stranger(1, draw_pulse_token()), uncalled(7, token), child(2, token);
  parent.dial.await(listener, {1, 2, 4});
  stranger.dial.call(0, {"127.0.0.1"}, listener.port);
  uncalled.dial.call(0, {"127.0.0.1"}, listener.port);  // a rank that is not its child
  child.dial.call(0, {"127.0.0.1"}, listener.port);
  dial_until({&parent, &stranger, &uncalled, &child}, [&] { return !child.made.empty(); });
  dial_until({&parent, &stranger, &uncalled, &child}, [&] { return !parent.made.empty(); });
  CHECK(parent.made.size() == 1);
  CHECK(parent.made.contains(2));
  CHECK(stranger.made.empty());
  CHECK(uncalled.made.empty());
  CHECK_FALSE(parent.dial.done());
  parent.dial.turn(10);
  CHECK(parent.dial.done());
  CHECK(parent.dial.missing() == std::vector<int>{1, 4});
  CHECK(parent.dial.descriptors().empty());
  // What listens where a rank should be, but is none, gets no rank.
  const vfm::Loopback other;
  DialEnd lost(2, token);
  const std::string url = other.url("");
  lost.dial.call(0, {"127.0.0.1"}, std::stoi(url.substr(url.rfind(':') + 1)));
  dial_until({&lost}, [&] { return lost.dial.descriptors().front().write == false; });
  const int accepted = other.accept();
  CHECK(::send(accepted, "0123456789abcdef", 16, 0) == 16);
  dial_until({&lost}, [&] { return lost.dial.descriptors().empty(); });
  CHECK(lost.made.empty());
  ::close(accepted);
}

TEST_CASE(
    "pulse thread: one warning names the hosts that have no connection, and the run goes on") {
  const vfm::HeardLog log;
  FlightRecorder recorder;
  {
    PulsePlan plan;
    plan.ranks = {{"a", 10, 0}, {"a", 11, 0}, {"b", 12, 2}, {"c", 13, 3}};
    plan.ports = {0, 0, 0, 0};
    plan.addresses = {"10.0.0.1", "10.1.0.1"};
    plan.listener = listen_for_pulse(true, 4);
    plan.dial_seconds = 0.1;
    PulseThread thread(std::move(plan), recorder);
    for (int turn = 0; turn < 500 && vfm::HeardLog::lines().empty(); ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    thread.wait_for_end(0.1);
  }
  REQUIRE(vfm::HeardLog::lines().size() == 1);
  CHECK(
      vfm::HeardLog::lines()[0].starts_with("ranks 1-3 (the first: rank 1 on host a (pid 11)) made "
                                            "no connection within 0.1 s to rank 0 on "
                                            "host a (pid 10), which listens at port "));
  CHECK(vfm::HeardLog::lines()[0].find(" of 10.0.0.1, 10.1.0.1: see to the interfaces") !=
        std::string::npos);
}
