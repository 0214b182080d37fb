// Sessions of video engines that programs share by a file, on GPUs that are made up: which GPU
// one gets, what becomes of those of a program that is killed, and that memory is never exceeded.
// SPDX-License-Identifier: Apache-2.0
#include "share/engine_sessions.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "share/gpu_board.h"
#include "share/gpu_states.h"
#include "share/slots.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::share;

namespace {

using std::chrono::milliseconds;
using Wait = EngineSessions::Wait;
using Sessions = std::vector<std::shared_ptr<EngineSessions::Session>>;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

void await_state(const std::function<bool()>& what) {
  for (int i = 0; i < 60'000 && !what(); ++i)
    std::this_thread::sleep_for(milliseconds(1));
  REQUIRE(what());
}

std::vector<SharedGpu> gpus_with(const std::vector<int>& sessions,
                                 std::int64_t memory = 16 * kGiB) {
  std::vector<SharedGpu> gpus;
  for (const int some : sessions) {
    const int i = static_cast<int>(gpus.size());
    gpus.push_back({i, "GPU " + std::to_string(i), memory, some});
  }
  return gpus;
}

std::map<int, int> by_gpu(const Sessions& sessions) {
  std::map<int, int> counts;
  for (const auto& session : sessions)
    ++counts[session ? session->gpu : -1];
  return counts;
}

Sessions take_some(EngineSessions& from, int count) {
  Sessions all;
  for (int i = 0; i < count; ++i)
    all.push_back(from.take(1));
  return all;
}

/// A program that takes so many, waiting for each, says so, and then does what `last` does.
class Program {
 public:
  Program(const std::string& share, const std::vector<SharedGpu>& gpus, int count,
          const std::function<void(EngineSessions&)>& last = nullptr) {
    int fds[2];
    REQUIRE(::pipe(fds) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::signal(SIGTERM, request_stop);
      EngineSessions sessions(share, gpus, "other", GpuKind::decode, Wait::yes);
      Sessions held;
      for (int i = 0; i < count; ++i)
        std::thread([&] { held.push_back(sessions.take(1)); }).join();
      const char said = 1;
      if (::write(fds[1], &said, 1) != 1) ::_exit(2);
      if (last) {
        try {
          last(sessions);
        } catch (const Stopped&) {
          ::_exit(7);
        }
        ::_exit(0);
      }
      for (;;)
        ::pause();
    }
    ::close(fds[1]);
    char said = 0;
    REQUIRE(::read(fds[0], &said, 1) == 1);
    ::close(fds[0]);
  }
  ~Program() {
    if (pid_ > 0) end(SIGKILL);
  }
  /// The status with which it ends.
  int end(int signal) {
    int status = 0;
    ::kill(pid_, signal);
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_ = 0;
};

/// Loads a model of that many bytes on the first GPU that it gets; nothing where none in time.
std::optional<std::string> load_model(GpuBoard& board, int ms) {
  std::atomic<bool> over = false, done = false;
  std::thread timer([&] {
    for (int i = 0; i < ms && !done; ++i)
      std::this_thread::sleep_for(milliseconds(1));
    over = true;
  });
  const auto lease = board.take(&over);
  done = true;
  if (lease) board.give(*lease);
  timer.join();
  return lease ? std::optional(lease->gpu->name) : std::nullopt;
}

GpuNeed model_of(std::int64_t memory) {
  return {.stage = "model", .memory = memory, .input = -1, .output = -1};
}

}  // namespace

TEST_CASE("sessions of two programs go to the GPUs that have most free") {
  const TemporaryFolder folder;
  const auto gpus = gpus_with({2, 2, 4});
  EngineSessions own(folder / "share", gpus, "own", GpuKind::decode, Wait::no);
  Sessions first = take_some(own, 2);
  CHECK(by_gpu(first) == std::map<int, int>{{2, 2}});
  const Program other(folder / "share", gpus, 4);
  // That one has had one on each of 0 and 1, and two of those that were as free.
  const Sessions rest = take_some(own, 3);
  CHECK(by_gpu(rest)[-1] == 1);
  first.clear();
  CHECK(by_gpu(take_some(own, 3)) == std::map<int, int>{{2, 2}, {-1, 1}});
}

TEST_CASE("sessions of a program that is killed come back") {
  const TemporaryFolder folder;
  const auto gpus = gpus_with({2, 1});
  EngineSessions own(folder / "share", gpus, "own", GpuKind::decode, Wait::yes);
  Program other(folder / "share", gpus, 3);
  std::atomic<int> got = 0;
  std::thread waits([&] {
    const auto session = own.take(1);
    got = session ? 1 : -1;
  });
  std::this_thread::sleep_for(milliseconds(120));
  CHECK(got == 0);
  other.end(SIGKILL);
  waits.join();
  CHECK(got == 1);
  EngineSessions third(folder / "share", gpus, "third", GpuKind::decode, Wait::no);
  CHECK(by_gpu(take_some(third, 4)) == std::map<int, int>{{0, 2}, {1, 1}, {-1, 1}});
}

TEST_CASE("who waits for a session heeds a stop, and gets one that is given back") {
  const TemporaryFolder folder;
  const auto gpus = gpus_with({1});
  const auto one =
      std::make_unique<EngineSessions>(folder / "share", gpus, "own", GpuKind::decode, Wait::no);
  // By a thread that has ended: this one, which is forked, has none, and would wait.
  std::shared_ptr<EngineSessions::Session> held;
  std::thread([&] { held = one->take(1); }).join();
  const auto wait = [](EngineSessions& sessions) { sessions.take(1); };
  Program stops(folder / "share", gpus, 0, wait), gets(folder / "share", gpus, 0, wait);
  std::this_thread::sleep_for(milliseconds(120));
  const int stopped = stops.end(SIGTERM);
  CHECK((WIFEXITED(stopped) && WEXITSTATUS(stopped) == 7));
  held.reset();
  const int ended = gets.end(0);
  CHECK((WIFEXITED(ended) && WEXITSTATUS(ended) == 0));
}

TEST_CASE("large pictures take several sessions of one GPU, and none that no GPU has") {
  EngineSessions own("", gpus_with({3, 4}), "own", GpuKind::decode, Wait::yes);
  std::vector<std::shared_ptr<EngineSessions::Session>> held;
  // Each in a thread of its own, as one that has some does not wait.
  const auto take = [&](std::int64_t bytes) {
    std::thread([&] { held.push_back(own.take(bytes)); }).join();
    return held.back() ? held.back()->gpu : -1;
  };
  CHECK(take(4 * kSessionBytes + 1) == -1);
  CHECK(take(3 * kSessionBytes + 1) == 1);
  CHECK(take(2 * kSessionBytes) == 0);
  std::atomic<int> got = 0;
  std::thread waits([&] { got = own.take(2 * kSessionBytes) ? 1 : -1; });
  std::this_thread::sleep_for(milliseconds(80));
  CHECK(got == 0);
  held.erase(held.begin() + 1);
  waits.join();
  CHECK(got == 1);
  // Software would decode it; but who encodes has all that a GPU has.
  EngineSessions encodes("", gpus_with({3, 4}), "own", GpuKind::encode, Wait::yes);
  const auto all = encodes.take(100 * kSessionBytes, Wait::no);
  REQUIRE(all);
  CHECK(all->gpu == 1);
  CHECK(encodes.take(1, Wait::no)->gpu == 0);
}

TEST_CASE("a thread that has a session waits for none that comes before it") {
  const TemporaryFolder folder;
  const auto gpus = gpus_with({1});
  EngineSessions decode(folder / "share", gpus, "own", GpuKind::decode, Wait::yes);
  EngineSessions encode(folder / "share", gpus, "own", GpuKind::encode, Wait::yes);
  auto decoder = decode.take(1);
  REQUIRE(decoder);
  CHECK_FALSE(decode.take(1));                                         // it would wait for itself
  std::thread([&] { CHECK_FALSE(decode.take(1, Wait::no)); }).join();  // another one does not
  auto encoder = encode.take(1);
  REQUIRE(encoder);
  decoder.reset();
  std::thread([&] { decoder = decode.take(1); }).join();
  REQUIRE(decoder);
  CHECK_FALSE(decode.take(1));  // it has one of encoding
  // Given back by whatever thread, it is none of this one's any more.
  std::thread([&] { encoder.reset(); }).join();
  std::atomic<bool> given = false;
  std::thread gives([&] {
    std::this_thread::sleep_for(milliseconds(80));
    given = true;
    decoder.reset();
  });
  CHECK(decode.take(1));
  CHECK(given);
  gives.join();
}

TEST_CASE("who waits for a session leaves its slot to others") {
  EngineSessions own("", gpus_with({1}), "own", GpuKind::decode, Wait::yes);
  auto held = own.take(1);
  Slots slots(1);
  std::atomic<bool> got = false;
  std::thread waits([&] {
    const Slots::Hold hold(slots);
    const auto session = own.take(1);
    got = session != nullptr;
  });
  {
    // Had it the slot, this would wait for ever, with the session that the other waits for.
    std::this_thread::sleep_for(milliseconds(80));
    const Slots::Hold hold(slots);
    CHECK_FALSE(got);
    held.reset();
  }
  waits.join();
  CHECK(got);
}

TEST_CASE("memory of sessions is kept from models, and no session takes that of a model") {
  const TemporaryFolder folder;
  const std::int64_t memory = 4 * kGiB;
  const auto gpus = gpus_with({4}, memory);
  const auto join = [&](GpuKind kind) {
    return std::make_unique<EngineSessions>(folder / "share", gpus, "own", kind, Wait::yes);
  };
  auto decode = join(GpuKind::decode);
  const std::int64_t kept = decode->kept_bytes(gpus[0]);
  CHECK(kept > 4 * kSessionBytes);
  CHECK(decode->kept_bytes({9, "GPU 9", memory, 4}) == 0);
  {
    GpuBoard large(folder / "share", gpus, model_of(memory - kept + 1), {});
    CHECK_FALSE(load_model(large, 150));
  }
  GpuBoard fits(folder / "share", gpus, model_of(memory - kept), {});
  CHECK(load_model(fits, 60'000));
  GpuWatch watch(folder / "share");
  CHECK(watch.look().gpus.at(0).used == memory - 4 * kSessionBytes);
  const Sessions all = take_some(*decode, 4);
  CHECK(by_gpu(all) == std::map<int, int>{{0, 4}});
  CHECK(watch.look().gpus.at(0).used == memory);
  // A model that was there first leaves none to a program that comes later, which does not wait
  // though it would, and has none of that kind.
  auto encode = join(GpuKind::encode);
  CHECK(by_gpu(take_some(*encode, 1)) == std::map<int, int>{{-1, 1}});
}

TEST_CASE("a worker that decodes where its model computes takes one from the others") {
  const TemporaryFolder folder;
  const auto gpus = gpus_with({2, 2});
  EngineSessions decode(folder / "share", gpus, "own", GpuKind::decode, Wait::no);
  GpuNeed need = model_of(kGiB);
  need.beside = gpu_flag(GpuKind::decode);
  GpuBoard packs(folder / "share", gpus, need, {});
  const auto lease = packs.take();
  const int other = 1 - lease->gpu->index;
  CHECK(by_gpu(take_some(decode, 4)) ==
        std::map<int, int>{{lease->gpu->index, 1}, {other, 2}, {-1, 1}});
  packs.give(*lease);
  CHECK(by_gpu(take_some(decode, 5)) == std::map<int, int>{{0, 2}, {1, 2}, {-1, 1}});
}

TEST_CASE("nobody waits for sessions that models have beside them") {
  const TemporaryFolder folder;
  const auto gpus = gpus_with({3});
  GpuNeed need = model_of(kGiB);
  need.beside = gpu_flag(GpuKind::decode) | gpu_flag(GpuKind::encode);
  GpuBoard packs(folder / "share", gpus, need, {});
  const auto busy = packs.take();
  const auto join = [&](GpuKind kind) {
    return std::make_unique<EngineSessions>(folder / "share", gpus, "own", kind, Wait::yes);
  };
  auto decode = join(GpuKind::decode), encode = join(GpuKind::encode);
  // A large video is software's at once, and waits where others have what it needs.
  CHECK_FALSE(decode->take(3 * kSessionBytes));
  auto one = decode->take(1);
  std::atomic<int> got = 0;
  std::thread waits([&] { got = decode->take(2 * kSessionBytes) ? 1 : -1; });
  std::this_thread::sleep_for(milliseconds(80));
  CHECK(got == 0);
  one.reset();
  waits.join();
  CHECK(got == 1);
  // Nothing else encodes: a large clip has what the GPU has left, and waits for that.
  auto large = encode->take(100 * kSessionBytes);
  REQUIRE(large);
  std::thread next([&] { got = encode->take(100 * kSessionBytes) ? 2 : -1; });
  std::this_thread::sleep_for(milliseconds(80));
  CHECK(got == 1);
  large.reset();
  next.join();
  CHECK(got == 2);
  packs.give(*busy);
  // As long as its model stays, that is so; free ones are given all the same.
  CHECK(decode->take(3 * kSessionBytes));
}

TEST_CASE("a worker's own sessions are as many as it has, and it waits for none") {
  EngineSessions own(3);
  auto two = own.take(2 * kSessionBytes);
  REQUIRE(two);
  CHECK(two->gpu == 0);
  CHECK_FALSE(own.take(2 * kSessionBytes));
  const auto one = own.take(1);
  CHECK(one);
  CHECK_FALSE(own.take(1));
  two.reset();
  two = own.take(2 * kSessionBytes);
  CHECK(two);
  own.fail(std::move(two), "it has no engine");
  try {
    own.take(1);
    FAIL("a session of what failed");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::device);
    CHECK_THAT(error.what(), Catch::Contains("it has no engine"));
  }
}

TEST_CASE("a GPU that cannot is left out by name, and where none is left that is an error") {
  static std::string said;
  said.clear();
  set_log_sink([](LogLevel, std::string_view words) { said += words; }, LogLevel::warning);
  EngineSessions own("", gpus_with({1, 2}), "own", GpuKind::encode, Wait::yes);
  auto session = own.take(1);
  CHECK(session->gpu == 1);
  own.fail(std::move(session), "it has no engine");
  CHECK_THAT(said, Catch::Contains("device 'GPU 1' is left out for own") &&
                       Catch::Contains("it has no engine"));
  session = own.take(1);
  CHECK(session->gpu == 0);
  own.fail(std::move(session), "nor this");
  CHECK_THROWS_WITH(own.take(1), Catch::Contains("'GPU 1': it has no engine") &&
                                     Catch::Contains("'GPU 0': nor this"));
  set_log_sink(nullptr, LogLevel::warning);
}

TEST_CASE("sessions are shown with the programs that have them") {
  const auto begin = std::chrono::steady_clock::now();
  const TemporaryFolder folder;
  const auto gpus = gpus_with({2});
  EngineSessions decode(folder / "share", gpus, "own", GpuKind::decode, Wait::yes);
  EngineSessions encode(folder / "share", gpus, "own", GpuKind::encode, Wait::yes);
  Sessions held = take_some(decode, 2);
  std::thread waits([&] { decode.take(1); });
  GpuWatch watch(folder / "share");
  GpuStageState state;
  await_state([&] {
    for (const GpuStageState& one : watch.look().stages)
      if (one.kind == "decode") state = one;
    return state.waiting == 1;
  });
  CHECK(state.held == 2);
  CHECK(state.stage == "own");
  held.clear();
  waits.join();
  const GpuStates after = watch.look();
  REQUIRE(after.stages.size() == 2);
  for (const GpuStageState& one : after.stages) {
    const bool decodes = one.kind == "decode";
    CHECK(one.items == (decodes ? 3 : 0));
    CHECK((one.short_seconds > 0) == decodes);
    CHECK((one.busy_seconds > 0) == decodes);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    CHECK(one.busy_seconds <= 3 * passed.count());  // of as many sessions
    CHECK(one.held == 0);
  }
}
