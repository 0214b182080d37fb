// Slots that programs share by a file: who gets them, and what becomes of those of a killed
// program.
// SPDX-License-Identifier: Apache-2.0
#include "share/pipe_board.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "share/ordered.h"
#include "share/pipe_record.h"
#include "share/slots.h"
#include "support/stopped_locker.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::share;

namespace {

using Use = PipeBoard::Use;
const PipeBoard::Stage kNoPipes{.name = "stage", .input = -1, .output = -1};

/// A program of a few slots, which says by a pipe that it has them, and then sleeps.
class Holder {
 public:
  Holder(const std::string& path, int slots) {
    int fds[2];
    REQUIRE(::pipe(fds) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      PipeBoard board(path, 0, 1, kNoPipes);
      board.set_most(slots);
      for (int i = 0; i < slots; ++i)
        board.acquire(Use::item);
      if (::write(fds[1], "x", 1) == 1)
        for (;;)
          ::pause();
      ::kill(::getpid(), SIGKILL);
    }
    char byte;
    ::close(fds[1]);
    REQUIRE(::read(fds[0], &byte, 1) == 1);
    ::close(fds[0]);
  }
  ~Holder() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

void wait_until(const std::function<bool()>& what) {
  for (int i = 0; i < 60'000 && !what(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(what());
}

/// Threads of all programs that wait for a slot for an item.
int waiting(const PipeBoard& board) {
  int all = 0;
  for (const StageState& stage : board.stages())
    all += stage.waiting;
  return all;
}

std::string warnings;  // of the log sink

/// Numbers that forked programs see, too.
struct Shared {
  std::atomic<int> counts[2];
};
std::shared_ptr<Shared> shared_numbers() {
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  return {new (memory) Shared{}, [](Shared* shared) { ::munmap(shared, sizeof(Shared)); }};
}

int held(const PipeBoard& board) {
  int all = 0;
  for (const StageState& stage : board.stages())
    all += stage.held;
  return all;
}

}  // namespace

TEST_CASE("programs that share a file have so many slots together, whoever has them") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  const auto a = std::make_shared<PipeBoard>(path, 3, 1, kNoPipes);
  const auto b = std::make_shared<PipeBoard>(path, 0, 1, kNoPipes);
  CHECK(b->slots() == 3);
  Slots first(3, "", a), second(2, "", b);
  first.acquire();
  first.acquire();
  second.acquire();
  std::atomic<int> got = 0;
  std::thread third([&] {
    second.acquire();
    ++got;
  });
  wait_until([&] { return first.wanted(); });
  CHECK(got == 0);
  CHECK(held(*a) == 3);
  first.release();
  third.join();
  CHECK(held(*b) == 3);
  CHECK_FALSE(first.wanted());
  // The second has all that it may have.
  first.release();
  std::thread fourth([&] {
    second.acquire();
    ++got;
  });
  wait_until([&] { return waiting(*a) == 1; });
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  CHECK(got == 1);
  second.release();
  fourth.join();
  CHECK(got == 2);
  second.release();
  second.release();
  CHECK(held(*a) == 0);
}

TEST_CASE("a program that is killed takes no slot with it") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  PipeBoard board(path, 4, 1, kNoPipes);
  board.set_most(4);
  Holder holder(path, 3);
  board.acquire(Use::item);
  std::atomic<int> got = 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      board.acquire(Use::item);
      ++got;
    });
  wait_until([&] { return waiting(board) == 3; });
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  CHECK(got == 1);
  holder.kill();
  for (std::thread& thread : threads)
    thread.join();
  CHECK(got == 4);
  for (int i = 0; i < 4; ++i)
    board.release();
  // It is shown as ended; whoever comes next finds four slots.
  const auto stages = board.stages();
  CHECK(std::count_if(stages.begin(), stages.end(), [](const auto& s) { return s.alive; }) == 1);
  Holder all(path, 4);
  CHECK(held(board) == 4);
}

TEST_CASE("slots of a killed program are found where items are shorter than a turn of waiting") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  PipeBoard board(path, 4, 1, kNoPipes);
  board.set_most(4);
  Holder holder(path, 3);
  std::atomic<int> at_once = 0, most = 0, done = 0;
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!over) {
        board.acquire(Use::item);
        const int now = ++at_once;
        if (now > most) most = now;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        --at_once;
        ++done;
        board.release();
      }
    });
  wait_until([&] { return done >= 20; });
  CHECK(most == 1);
  holder.kill();
  for (int i = 0; i < 60'000 && most < 4; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  over = true;
  for (std::thread& thread : threads)
    thread.join();
  CHECK(most == 4);
}

TEST_CASE("a program that is stopped keeps no slot from the others that it does not have") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  PipeBoard board(path, 1, 1, kNoPipes);
  board.acquire(Use::item);
  // It comes later in the pipe, and waits for the slot.
  const pid_t later = ::fork();
  if (later == 0) {
    PipeBoard other(path, 0, 1, kNoPipes);
    other.acquire(Use::item);
    ::kill(::getpid(), SIGKILL);
  }
  wait_until([&] { return board.wanted(); });
  ::kill(later, SIGSTOP);
  int status = 0;
  REQUIRE(::waitpid(later, &status, WUNTRACED) == later);
  REQUIRE(WIFSTOPPED(status));
  board.release();
  board.acquire(Use::item);
  CHECK(held(board) == 1);
  for (const StageState& stage : board.stages())
    CHECK(stage.stopped == !stage.self);
  ::kill(later, SIGKILL);
  ::waitpid(later, nullptr, 0);
  board.release();
}

TEST_CASE("slots of a program that is stopped go to others, and it takes them in turn again") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  const auto board = std::make_shared<PipeBoard>(path, 2, 1, kNoPipes);
  const auto numbers = shared_numbers();
  // Two threads that compute for ever, with a safe point each millisecond.
  const pid_t other = ::fork();
  if (other == 0) {
    Slots slots(2, "", std::make_shared<PipeBoard>(path, 0, 1, kNoPipes));
    const auto compute = [&](std::atomic<int>& count) {
      const Slots::Hold hold(slots);
      for (;;) {
        ++count;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        check_stop();
      }
    };
    std::thread second([&] { compute(numbers->counts[1]); });
    compute(numbers->counts[0]);
  }
  const auto steps = [&] { return numbers->counts[0] + numbers->counts[1]; };
  wait_until([&] { return numbers->counts[0] > 0 && numbers->counts[1] > 0; });
  set_log_sink([](LogLevel, std::string_view words) { warnings += words; }, LogLevel::warning);
  ::kill(other, SIGSTOP);
  int status = 0;
  REQUIRE(::waitpid(other, &status, WUNTRACED) == other);
  Slots slots(2, "", board);
  slots.acquire();
  slots.acquire();
  CHECK(held(*board) == 2);
  set_log_sink(nullptr, LogLevel::warning);
  const std::string pid = std::to_string(other);
  CHECK(warnings == "stage (process " + pid +
                        ") is stopped: others have its 2 of the shared slots until 'kill -CONT " +
                        pid + "'");
  // It goes on: no thread of it computes until a slot is given back, and then as many as there are.
  ::kill(other, SIGCONT);
  wait_until([&] { return waiting(*board) == 2; });
  int before = steps();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(steps() == before);
  CHECK(held(*board) == 2);
  slots.release();
  wait_until([&] { return steps() > before + 10; });
  CHECK(held(*board) == 2);
  CHECK(waiting(*board) == 1);
  slots.release();
  wait_until([&] { return waiting(*board) == 0; });
  before = numbers->counts[0];
  const int second = numbers->counts[1];
  wait_until([&] { return numbers->counts[0] > before && numbers->counts[1] > second; });
  CHECK(held(*board) == 2);
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  wait_until([&] { return held(*board) == 0; });
}

TEST_CASE("a program that is stopped with the file's lock holds up none that has joined") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  PipeBoard one(path, 2, 1, kNoPipes), two(path, 2, 1, kNoPipes);
  auto leaves = std::make_unique<PipeBoard>(path, 2, 1, kNoPipes);
  Holder holder(path, 1);
  const StoppedLocker stopped(path);
  one.set_most(2);
  one.start("items");
  one.acquire(Use::item);
  CHECK(held(one) == 2);
  std::thread waits([&] { two.acquire(Use::item); });
  wait_until([&] { return one.wanted(); });
  holder.kill();
  waits.join();
  leaves.reset();
  CHECK(two.take_lost_tokens() == 0);
  two.release();
  one.release();
  CHECK(held(one) == 0);
  CHECK(one.stages().size() == 4);
}

TEST_CASE("who waits to join says for whom, and heeds a stop") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  { PipeBoard made(path, 2, 1, kNoPipes); }
  const StoppedLocker stopped(path);
  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  static int to;
  to = fds[1];
  const pid_t joins = ::fork();
  if (joins == 0) {
    ::signal(SIGTERM, request_stop);
    set_log_sink(
        [](LogLevel, std::string_view words) {
          if (::write(to, words.data(), words.size()) < 0) ::_exit(1);
        },
        LogLevel::warning);
    try {
      PipeBoard board(path, 2, 1, kNoPipes);
    } catch (const Stopped&) {
      ::_exit(7);
    } catch (...) {
    }
    ::_exit(1);
  }
  char words[1024];
  const ssize_t got = ::read(fds[0], words, sizeof words);
  REQUIRE(got > 0);
  CHECK_THAT(std::string(words, static_cast<std::size_t>(got)),
             Catch::Contains(path) && Catch::Contains("which is stopped") &&
                 Catch::Contains("(process " + std::to_string(stopped.pid()) + ")"));
  ::kill(joins, SIGTERM);
  int status = 0;
  REQUIRE(::waitpid(joins, &status, 0) == joins);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST_CASE("of programs that take slots at once none has more than there are") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  constexpr int kPrograms = 3, kThreads = 3, kSlots = 4;
  std::vector<std::unique_ptr<PipeBoard>> boards;
  for (int i = 0; i < kPrograms; ++i) {
    boards.push_back(std::make_unique<PipeBoard>(path, kSlots, 1, kNoPipes));
    boards.back()->set_most(kThreads);
  }
  std::atomic<int> now = 0, most = 0, done = 0;
  std::vector<std::thread> threads;
  for (const auto& board : boards)
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        for (int round = 0; round < 300; ++round, ++done) {
          board->acquire(Use::item);
          const int with = ++now;
          int seen = most;
          while (with > seen && !most.compare_exchange_weak(seen, with)) {
          }
          --now;
          board->release();
        }
      });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(most <= kSlots);
  CHECK(done == kPrograms * kThreads * 300);
  CHECK(held(*boards[0]) == 0);
}

TEST_CASE("the later program of a pipe gets the slot, and an item before help") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  int between[2];
  REQUIRE(::pipe(between) == 0);
  // The later one joins first.
  PipeBoard later(path, 1, 1, {.name = "later", .input = between[0], .output = -1});
  PipeBoard earlier(path, 1, 1, {.name = "earlier", .input = -1, .output = between[1]});
  const auto stages = later.stages();
  REQUIRE(stages.size() == 2);
  CHECK(stages[0].name == "earlier");
  CHECK(stages[1].name == "later");
  earlier.set_most(2);
  std::vector<std::string> order;  // guarded by the one slot
  const auto take = [&](PipeBoard& board, Use use, const char* name) {
    return std::thread([&board, &order, use, name] {
      board.acquire(use);
      order.emplace_back(name);
      board.release();
    });
  };
  // On a busy machine a thread may come too late for its turn, and lose it to who has waited a
  // whole turn: rounds that take as long do not count.
  using Clock = std::chrono::steady_clock;
  int counted = 0, as_told = 0;
  for (int round = 0; round < 1000 && counted < 5; ++round) {
    order.clear();
    earlier.acquire(Use::item);
    std::vector<std::thread> threads;
    threads.push_back(take(later, Use::help, "help"));
    threads.push_back(take(earlier, Use::item, "earlier"));
    wait_until([&] { return earlier.stages()[0].waiting == 1; });
    threads.push_back(take(later, Use::item, "later"));
    wait_until([&] { return earlier.stages()[1].waiting == 1; });
    const Clock::time_point begin = Clock::now();
    earlier.release();
    for (std::thread& thread : threads)
      thread.join();
    REQUIRE(order.size() == 3);
    if (Clock::now() - begin > std::chrono::nanoseconds(kSharedTurn)) continue;
    ++counted;
    as_told += order == std::vector<std::string>{"later", "earlier", "help"} ? 1 : 0;
  }
  CHECK(counted == 5);
  CHECK(as_told == counted);
  ::close(between[0]);
  ::close(between[1]);
}

TEST_CASE("what a program of a pipe did and waited for is on the board") {
  const TemporaryFolder folder;
  const auto board = std::make_shared<PipeBoard>(folder.path + "/slots", 2, 1, kNoPipes);
  board->start("films");
  Slots slots(2, "", board);
  int i = 0;
  for_each_ordered<int, int>(
      slots,
      [&]() -> std::optional<int> {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return i < 8 ? std::optional(i++) : std::nullopt;
      },
      [](int& n) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return n;
      },
      [&](int&) {
        board->add_done(1);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      });
  const StageState state = board->stages().at(0);
  CHECK(state.unit == "films");
  CHECK(state.done == 8);
  CHECK(state.held == 0);
  CHECK(state.waiting == 0);
  CHECK(state.input_seconds >= .08);
  CHECK(state.busy_seconds >= .04);
  CHECK(state.output_seconds >= .016);
  CHECK(state.age >= state.input_seconds);
}

TEST_CASE("a board without slots shows those of a jobserver") {
  const TemporaryFolder folder;
  const auto board =
      std::make_shared<PipeBoard>(folder.path + "/slots", PipeBoard::kNone, 5, kNoPipes);
  CHECK(board->slots() == PipeBoard::kNone);
  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  REQUIRE(::write(fds[1], "+", 1) == 1);
  const std::string auth =
      "--jobserver-auth=" + std::to_string(fds[0]) + "," + std::to_string(fds[1]);
  CHECK(Slots::finds_jobserver(auth));
  Slots slots(4, auth, board);
  slots.acquire();
  slots.acquire();
  CHECK(held(*board) == 2);
  std::thread third([&] { slots.acquire(); });
  wait_until([&] { return board->stages()[0].waiting == 1; });
  slots.release();
  third.join();
  CHECK(held(*board) == 2);
  slots.release();
  slots.release();
  CHECK(held(*board) == 0);
  CHECK_THROWS_WITH(PipeBoard(folder.path + "/slots", 7, 1, kNoPipes),
                    Catch::Contains("have those of make, this one 7 slots"));
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST_CASE("a file that is not of this is refused, and left as it is") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  std::ofstream(path) << "my notes";
  CHECK_THROWS_WITH(PipeBoard(path, 2, 1, kNoPipes), Catch::Contains("not of VFM_SHARE"));
  std::string text;
  std::getline(std::ifstream(path), text);
  CHECK(text == "my notes");
  std::ofstream(path) << std::string(64 * 1024, 'x');
  CHECK_THROWS_WITH(PipeBoard(path, 2, 1, kNoPipes), Catch::Contains("not of VFM_SHARE"));
  CHECK_THROWS_WITH(PipeBoard(folder.path, 2, 1, kNoPipes), Catch::Contains("cannot open"));
  CHECK_THROWS_WITH(PipeBoard(folder.path + "/no/where", 2, 1, kNoPipes),
                    Catch::Contains("No such file"));
  REQUIRE(::mkfifo((folder.path + "/fifo").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(PipeBoard(folder.path + "/fifo", 2, 1, kNoPipes),
                    Catch::Contains("is not a file"));
}

TEST_CASE("programs that share agree on the number of slots; the next ones may choose another") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  {
    PipeBoard one(path, 0, 6, kNoPipes);
    CHECK(one.slots() == 6);
    CHECK_THROWS_WITH(PipeBoard(path, 5, 1, kNoPipes), Catch::Contains("have 6 slots, this one 5"));
    PipeBoard two(path, 6, 1, kNoPipes);
    CHECK(two.stages().size() == 2);
  }
  PipeBoard next(path, 5, 1, kNoPipes);
  CHECK(next.slots() == 5);
  CHECK(next.stages().size() == 1);
}

TEST_CASE("there is room for as many programs as are said, and then again") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  std::vector<std::unique_ptr<PipeBoard>> boards;
  for (int i = 0; i < 63; ++i)
    boards.push_back(std::make_unique<PipeBoard>(path, 2, 1, kNoPipes));
  CHECK_THROWS_WITH(PipeBoard(path, 2, 1, kNoPipes), Catch::Contains("63 programs share"));
  boards.pop_back();
  CHECK(PipeBoard(path, 2, 1, kNoPipes).stages().size() == 63);
}

TEST_CASE("a program that is about to end does not keep the next one out") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/slots";
  { PipeBoard gone(path, 2, 1, kNoPipes); }
  // It has left, but its lock is still there.
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct flock life {};
  life.l_type = F_WRLCK, life.l_whence = SEEK_SET, life.l_start = 1, life.l_len = 1;
  REQUIRE(::fcntl(fd, F_OFD_SETLK, &life) == 0);
  CHECK(PipeBoard(path, 2, 1, kNoPipes).stages().size() == 1);
  ::close(fd);
}
