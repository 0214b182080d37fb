// The pulse, with a made clock and socket pairs in place of connections.
// SPDX-License-Identifier: Apache-2.0
#include "dist/pulse.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dist/pulse_dial.h"

using namespace vfm::dist;
using Catch::Matchers::Contains;

namespace {

/// Six ranks: 0 to 2 on host a, 3 to 5 on host b.
class PulseHosts {
 public:
  PulseHosts() {
    std::vector<Pulse::Rank> ranks;
    for (int rank = 0; rank < 6; ++rank)
      ranks.push_back({rank < 3 ? "a" : "b", 100 + rank, rank < 3 ? 0 : 3});
    for (int rank = 0; rank < 6; ++rank)
      pulses_.push_back(std::make_unique<Pulse>(rank, ranks, [rank] {
        return R"({"section":"step","groups":[{"group":2,"first":0,"axis":"tp","begun":)" +
               std::to_string(rank == 4 ? 30 : 31) + R"(,"what":"all_gather of F32","ended":30},)" +
               R"({"group":3,"first":1,"axis":"pp","begun":0,"what":"","ended":0,"messages":7,)" +
               R"("last":"send of F32","open":1}]})";
      }));
    for (int rank = 1; rank < 6; ++rank) {
      std::array<int, 2> ends{};
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
      const int parent = at(rank).parent();
      at(rank).connect(parent, ends[0], 0);
      at(parent).connect(rank, ends[1], 0);
    }
  }
  Pulse& at(int rank) { return *pulses_[static_cast<std::size_t>(rank)]; }
  /// Lets all run up to this time but those that are stopped.
  void run_to(double time) {
    for (; now_ < time; now_ += Pulse::kTurn)
      for (int again = 0; again < 4; ++again)  // a message goes up and down in a moment
        turn();
  }
  void jump_to(double time) { now_ = time; }
  void kill(int rank) { pulses_[static_cast<std::size_t>(rank)].reset(); }
  void stop(int rank) { stopped_.insert(rank); }
  void resume(int rank) { stopped_.erase(rank); }
  double now() const { return now_; }
  int ended() {
    int count = 0;
    for (const auto& pulse : pulses_)
      count += pulse && pulse->end();
    return count;
  }

 private:
  void turn() {
    for (int rank = 0; rank < 6; ++rank)
      if (pulses_[static_cast<std::size_t>(rank)] && !stopped_.contains(rank)) at(rank).turn(now_);
  }
  std::vector<std::unique_ptr<Pulse>> pulses_;
  std::set<int> stopped_;
  double now_ = 0;
};

/// The two ends of a connection by TCP.
std::pair<int, int> connected() {
  const PulseListener listener = listen_for_pulse(false, 1);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(listener.port));
  const int one = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::connect(one, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  int other = -1;
  while (other < 0)  // the listener does not wait
    other = ::accept(listener.fd, nullptr, nullptr);
  ::close(listener.fd);
  return {one, other};
}

}  // namespace

TEST_CASE("pulse: the first ranks of hosts are between the others and rank 0") {
  PulseHosts hosts;
  CHECK(hosts.at(0).parent() == -1);
  CHECK(hosts.at(0).children() == std::vector<int>{1, 2, 3});
  CHECK(hosts.at(3).children() == std::vector<int>{4, 5});
  CHECK(hosts.at(5).parent() == 3);
  CHECK(hosts.at(5).children().empty());
  hosts.run_to(60);
  CHECK(hosts.ended() == 0);
  for (const std::string& beat : hosts.at(0).beats())
    CHECK_THAT(beat, Contains("\"step\""));
}

TEST_CASE("pulse: a rank that is stopped is named after the limit, by rank 0 and once") {
  PulseHosts hosts;
  hosts.run_to(5);
  hosts.stop(4);
  hosts.run_to(12.5);
  CHECK(hosts.ended() == 0);
  hosts.run_to(14.5);
  CHECK(hosts.ended() == 5);
  for (int rank = 0; rank < 6; ++rank) {
    if (rank == 4) continue;
    const PulseEnd& end = *hosts.at(rank).end();
    CHECK(end.kind == "silent");
    CHECK(end.rank == 4);
    CHECK(end.status == 5);
    CHECK(end.tells == (rank == 0));
  }
  CHECK_THAT(
      hosts.at(0).end()->message,
      Contains("rank 4 on host b (pid 104) is silent: no sign of life for 8 s") &&
          Contains("rank 4 was last seen in 'step', after all_gather of F32 (30 of 'tp'), in "
                   "send of F32 (message 7 of 'pp')") &&
          Contains("continues from the newest checkpoint"));
  // When it runs again, it learns of the end.
  hosts.resume(4);
  hosts.run_to(16);
  CHECK(hosts.at(4).end()->rank == 4);
}

TEST_CASE("pulse: a process that is gone is named at once") {
  PulseHosts hosts;
  hosts.run_to(5);
  hosts.kill(5);
  hosts.run_to(5.5);
  CHECK(hosts.ended() == 5);
  CHECK_THAT(hosts.at(0).end()->message, Contains("rank 5 on host b (pid 105) has ended without a "
                                                  "word"));
}

TEST_CASE("pulse: without the first rank of a host the ranks behind it end by themselves") {
  PulseHosts hosts;
  hosts.run_to(5);
  hosts.kill(3);
  hosts.run_to(5.5);
  CHECK(hosts.ended() == 5);
  CHECK(hosts.at(0).end()->tells);
  CHECK(hosts.at(0).end()->rank == 3);
  CHECK(hosts.at(4).end()->rank == 3);
  CHECK_FALSE(hosts.at(4).end()->tells);
}

TEST_CASE("pulse: of a silent rank 0 one rank tells on its host and one on the others") {
  PulseHosts hosts;
  hosts.run_to(5);
  hosts.stop(0);
  hosts.run_to(15);
  CHECK(hosts.ended() == 5);
  for (int rank = 1; rank < 6; ++rank)
    CHECK(hosts.at(rank).end()->tells == (rank == 1 || rank == 3));
  CHECK_THAT(hosts.at(1).end()->message, Contains("rank 0 on host a (pid 100) is silent"));
  // Nobody waits for it. When it runs again, it learns why the others are gone, and tells nothing.
  double now = hosts.now();
  CHECK_FALSE(hosts.at(1).may_go(true, now));
  CHECK(hosts.at(1).may_go(true, now + 1.1));
  for (int rank = 1; rank < 6; ++rank)
    hosts.kill(rank);
  hosts.resume(0);
  hosts.run_to(now + 1);
  CHECK(hosts.at(0).end()->rank == 0);
  CHECK_FALSE(hosts.at(0).end()->tells);
}

TEST_CASE("pulse: a job that is suspended and resumed goes on, in whatever order") {
  PulseHosts hosts;
  hosts.run_to(5);
  hosts.jump_to(3605);
  hosts.run_to(3620);
  CHECK(hosts.ended() == 0);
  // Host b is resumed three seconds later than host a, which is the least limit.
  for (int rank = 0; rank < 6; ++rank)
    hosts.at(rank).limit(3);
  hosts.jump_to(7200);
  for (int rank = 3; rank < 6; ++rank)
    hosts.stop(rank);
  hosts.run_to(7203);
  for (int rank = 3; rank < 6; ++rank)
    hosts.resume(rank);
  hosts.run_to(7230);
  CHECK(hosts.ended() == 0);
  // No limit, no error.
  for (int rank = 0; rank < 6; ++rank)
    hosts.at(rank).limit(0);
  hosts.stop(2);
  hosts.run_to(7300);
  CHECK(hosts.ended() == 0);
}

TEST_CASE("pulse: a goodbye is no alarm, but who leaves alone is named") {
  PulseHosts hosts;
  hosts.run_to(5);
  SECTION("the end of the run") {
    for (int rank = 0; rank < 6; ++rank) {
      hosts.at(rank).leave("");
      hosts.kill(rank);
      hosts.run_to(hosts.now() + 1);
      CHECK(hosts.ended() == 0);
    }
  }
  SECTION("a signal to one rank") {
    hosts.at(5).leave("signal 15");
    hosts.kill(5);
    hosts.run_to(9);
    CHECK(hosts.ended() == 0);
    hosts.run_to(11);
    CHECK(hosts.ended() == 5);
    CHECK_THAT(hosts.at(0).end()->message, Contains("rank 5 on host b (pid 105) has left the run "
                                                    "alone: signal 15"));
  }
}

TEST_CASE("pulse: a goodbye waits until the other end has it") {
  const auto [one, other] = connected();
  Pulse leaving(1, {{"a", 100, 0}, {"b", 101, 1}}, [] { return "x"; });
  leaving.connect(0, one, 0);
  CHECK(leaving.has_left());
  for (int i = 0; i < 16; ++i)  // more than the system keeps for who does not read
    leaving.leave(std::string(PulseLink::kMostText - 1, 'y'));
  CHECK_FALSE(leaving.has_left());
  PulseLink reader(other);
  std::vector<PulseLink::Frame> frames;
  bool heard = false;
  for (int turn = 0; turn < 10000 && !leaving.has_left(); ++turn)
    REQUIRE(reader.receive(frames, heard));
  CHECK(leaving.has_left());
  reader.receive(frames, heard);
  REQUIRE(frames.size() == 16);
  CHECK(frames.back().letter == 'G');
}

TEST_CASE("pulse: who says goodbye on a broken connection does not wait") {
  const auto [one, other] = connected();
  Pulse leaving(1, {{"a", 100, 0}, {"b", 101, 1}}, [] { return "x"; });
  leaving.connect(0, one, 0);
  leaving.leave("");
  const linger reset{1, 0};
  ::setsockopt(other, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  ::close(other);
  leaving.leave("");
  CHECK(leaving.has_left());
}

TEST_CASE("pulse: the longest error, and any number of lost ranks, go to all") {
  PulseHosts hosts;
  hosts.run_to(3);
  PulseEnd end{.kind = "stuck", .text = std::string(std::size_t{4} << 20, '\x01')};
  for (int rank = 0; rank < 300000; ++rank)
    end.ranks.push_back(rank % 6);
  hosts.at(5).report(end, hosts.now());
  hosts.run_to(6);
  CHECK(hosts.ended() == 6);
  CHECK_THAT(hosts.at(0).end()->message, Contains("continues from the newest checkpoint"));
}

TEST_CASE("pulse: what a rank finds itself goes to all, with what is known of those it names") {
  PulseHosts hosts;
  hosts.run_to(3);
  SECTION("missing ranks") {
    hosts.at(5).report({.kind = "stuck", .ranks = {4}, .text = "rank 4 did not come"}, hosts.now());
    hosts.run_to(3.5);
    CHECK(hosts.ended() == 6);
    CHECK_THAT(
        hosts.at(0).end()->message,
        Contains(
            "rank 4 did not come; rank 4 was last seen in 'step', after all_gather of F32 (30 of "
            "'tp')"));
    CHECK(hosts.at(0).end()->tells);
  }
  SECTION("nobody named: those behind the others are") {
    hosts.at(5).report({.kind = "stuck", .text = "not done for 10 s"}, hosts.now());
    hosts.run_to(3.5);
    CHECK_THAT(hosts.at(0).end()->message,
               Contains("not done for 10 s; rank 4 had not come to collective 31 of 'tp'"));
  }
  SECTION("an error, which its rank has told") {
    hosts.at(4).report({.kind = "error", .rank = 4, .text = "failed", .status = 2}, hosts.now());
    hosts.run_to(3.5);
    CHECK(hosts.ended() == 6);
    CHECK(hosts.at(0).end()->status == 2);
    CHECK_FALSE(hosts.at(0).end()->tells);
  }
  SECTION("a hub that does not answer") {
    hosts.stop(0);
    hosts.at(5).report({.kind = "stuck", .text = "by itself"}, hosts.now());
    hosts.run_to(6);
    CHECK(hosts.at(5).end()->tells);
  }
}

TEST_CASE("pulse: no rank goes before the records of those behind it are written") {
  PulseHosts hosts;
  hosts.run_to(3);
  hosts.kill(5);
  hosts.run_to(3.5);
  double now = hosts.now();
  const auto goes = [&](int rank, bool recorded) {
    hosts.jump_to(now);
    hosts.run_to(now + 0.1);
    return hosts.at(rank).may_go(recorded, now);
  };
  CHECK_FALSE(goes(0, true));
  CHECK_FALSE(goes(1, true));  // it waits for rank 0
  CHECK_FALSE(goes(2, true));
  CHECK_FALSE(goes(3, true));
  CHECK_FALSE(goes(4, false));
  CHECK_FALSE(goes(0, true));
  CHECK_FALSE(goes(4, true));
  CHECK_FALSE(goes(3, true));
  CHECK(goes(0, true));
  hosts.kill(0);
  now += 1.1;
  CHECK(goes(1, true));
  // A disk that hangs holds nobody for long.
  CHECK_FALSE(goes(4, false));
  now += 8;
  hosts.at(4).may_go(false, now);
  now += 8;
  CHECK(hosts.at(4).may_go(false, now));
}
