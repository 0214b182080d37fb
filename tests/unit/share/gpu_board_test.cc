// GPUs that programs share by a file: who has them, where models are loaded, and what becomes of
// those of a program that is killed or stopped. Loads take a moment here, and need no GPU.
// SPDX-License-Identifier: Apache-2.0
#include "share/gpu_board.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "share/gpu_map.h"
#include "share/gpu_states.h"
#include "share/ordered.h"
#include "support/stopped_locker.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::share;

namespace {

using std::chrono::milliseconds;

void await(const std::function<bool()>& what) {
  for (int i = 0; i < 60'000 && !what(); ++i)
    std::this_thread::sleep_for(milliseconds(1));
  REQUIRE(what());
}

std::vector<SharedGpu> gpus_of(int count, std::int64_t memory) {
  std::vector<SharedGpu> gpus;
  for (int i = 0; i < count; ++i)
    gpus.push_back({i, "GPU " + std::to_string(i), memory});
  return gpus;
}

/// What is loaded on the machine's GPUs: more than there is memory for is never.
class MadeMachine {
 public:
  explicit MadeMachine(std::int64_t memory) : memory_(memory) {}
  GpuBoard::Actions actions(const GpuNeed& need, int load_ms = 1) {
    return {[=, this](const SharedGpu& gpu) {
              change(need, gpu, 1);
              std::this_thread::sleep_for(milliseconds(load_ms));
            },
            [=, this](const SharedGpu& gpu) { change(need, gpu, -1); }};
  }
  int loaded(const std::string& stage) {
    const std::lock_guard lock(mutex_);
    int count = 0;
    for (const auto& [at, models] : models_)
      if (at.first == stage) count += models;
    return count;
  }
  bool kept() const { return kept_; }
  int loads() const { return loads_; }

 private:
  void change(const GpuNeed& need, const SharedGpu& gpu, int by) {
    const std::lock_guard lock(mutex_);
    int& models = models_[{need.stage, gpu.name}];
    models += by;
    used_[gpu.name] += by * need.memory;
    if (models < 0 || models > 1 || used_[gpu.name] > memory_) kept_ = false;
    if (by > 0) ++loads_;
  }
  const std::int64_t memory_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, int> models_;
  std::map<std::string, std::int64_t> used_;
  std::atomic<bool> kept_ = true;
  std::atomic<int> loads_ = 0;
};

GpuNeed need_of(const std::string& stage, std::int64_t memory) {
  return {.stage = stage, .memory = memory, .input = -1, .output = -1};
}

std::unique_ptr<GpuBoard> join_gpus(MadeMachine& machine, const std::string& share, int gpus,
                                    std::int64_t memory, const GpuNeed& need) {
  return std::make_unique<GpuBoard>(share, gpus_of(gpus, memory), need, machine.actions(need));
}

/// A program with a model on each of its GPUs and an item on the first, which says so and sleeps.
class GpuHolder {
 public:
  GpuHolder(const std::string& share, int gpus, std::int64_t memory, bool item,
            bool worker = false) {
    int fds[2];
    REQUIRE(::pipe(fds) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      GpuBoard board(share, gpus_of(gpus, memory), need_of("holder", memory), {});
      std::vector<GpuBoard::Lease> leases;
      for (int i = 0; i < gpus; ++i)
        leases.push_back(*board.take());
      for (std::size_t i = item ? 1 : 0; i < leases.size(); ++i)
        board.give(leases[i]);
      const pid_t child = worker ? ::fork() : 0;
      if (worker && child == 0)
        for (;;)
          ::pause();
      if (::write(fds[1], &child, sizeof child) == sizeof child)
        for (;;)
          ::pause();
      ::kill(::getpid(), SIGKILL);
    }
    ::close(fds[1]);
    REQUIRE(::read(fds[0], &worker_, sizeof worker_) == sizeof worker_);
    ::close(fds[0]);
  }
  ~GpuHolder() {
    kill();
    kill_worker();
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void kill_worker() {
    if (worker_ > 0) ::kill(worker_, SIGKILL);
    worker_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0, worker_ = 0;
};

/// A thread that takes so many GPUs, has them at the same time, and gives them back.
class Taker {
 public:
  explicit Taker(GpuBoard& board, int gpus = 1)
      : thread_([=, this, &board] {
          std::vector<GpuBoard::Lease> leases;
          for (int i = 0; i < gpus; ++i)
            leases.push_back(*board.take());
          got_ = true;
          for (const GpuBoard::Lease& lease : leases)
            board.give(lease);
        }) {}
  /// Whether it still has to wait for one after so long.
  bool waits(int ms) const {
    std::this_thread::sleep_for(milliseconds(ms));
    return !got_;
  }
  /// Waits until it has had them.
  void join() { thread_.join(); }

 private:
  std::atomic<bool> got_ = false;
  std::thread thread_;
};

/// Of the log sink, which other threads call.
std::string gpu_warnings;
std::atomic<int> gpu_warned = 0;
void keep_gpu_warnings() {
  gpu_warnings.clear();
  gpu_warned = 0;
  set_log_sink(
      [](LogLevel, std::string_view message) {
        gpu_warnings += message;
        ++gpu_warned;
      },
      LogLevel::warning);
}

}  // namespace

TEST_CASE("the GPUs of one program: an item a GPU, and a model stays until no more come") {
  MadeMachine machine(10);
  const GpuNeed need = need_of("stage", 6);
  auto board = join_gpus(machine, "", 2, 10, need);
  const auto one = board->take(), two = board->take();
  REQUIRE((one && two));
  CHECK(one->gpu->name != two->gpu->name);
  CHECK(machine.loaded("stage") == 2);
  Taker third(*board);
  CHECK(third.waits(120));
  board->give(*one);
  third.join();
  std::atomic<bool> over = false;
  const auto again = board->take();
  std::thread fourth([&] { CHECK_FALSE(board->take(&over)); });
  std::this_thread::sleep_for(milliseconds(120));
  over = true;
  fourth.join();
  board->give(*again);
  board->give(*two);
  CHECK(machine.loads() == 2);
  board->finished();
  await([&] { return machine.loaded("stage") == 0; });
  // Another item is loaded for again; whoever leaves unloads.
  board->give(*board->take());
  CHECK(machine.loaded("stage") >= 1);
  board.reset();
  CHECK(machine.loaded("stage") == 0);
  CHECK(machine.kept());
}

TEST_CASE("items of one program get GPUs in the order in which they came") {
  MadeMachine machine(10);
  auto board = join_gpus(machine, "", 1, 10, need_of("stage", 6));
  board->give(*board->take());
  constexpr int kThreads = 8, kItems = 25;
  std::atomic<int> taken = 0, most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kItems; ++i) {
        const int before = taken;
        const auto lease = board->take();
        const int others = taken++ - before;
        for (int seen = most; others > seen && !most.compare_exchange_weak(seen, others);) {
        }
        std::this_thread::sleep_for(milliseconds(2));
        board->give(*lease);
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  // One each that came before, but for a thread that is held up between its count and its turn.
  CHECK(most <= 3 * kThreads);
}

TEST_CASE("models of several stages are on one GPU where its memory allows, an item at a time") {
  const TemporaryFolder folder;
  MadeMachine machine(10);
  auto first = join_gpus(machine, folder / "share", 1, 10, need_of("first", 6));
  auto second = join_gpus(machine, folder / "share", 1, 10, need_of("second", 4));
  first->give(*first->take());
  second->give(*second->take());
  CHECK((machine.loaded("first") == 1 && machine.loaded("second") == 1));
  const auto lease = first->take();
  Taker other(*second);
  CHECK(other.waits(120));
  first->give(*lease);
  other.join();
  CHECK(machine.loads() == 2);
  CHECK(machine.kept());
}

TEST_CASE("where memory lacks, a stage that has nothing to do leaves its GPU to another") {
  const TemporaryFolder folder;
  MadeMachine machine(10);
  auto first = join_gpus(machine, folder / "share", 1, 10, need_of("first", 6));
  auto second = join_gpus(machine, folder / "share", 1, 10, need_of("second", 6));
  const auto lease = first->take();
  Taker other(*second);
  CHECK(other.waits(1300));  // an item of the first is on it
  CHECK(machine.loaded("first") == 1);
  first->give(*lease);
  other.join();
  CHECK(machine.loaded("first") == 0);
  // It gets it at once where the other one says that no more comes.
  second->finished();
  first->give(*first->take());
  CHECK(machine.kept());
}

TEST_CASE("items that wait for memory for long are told of once, with who has it") {
  const TemporaryFolder folder;
  MadeMachine machine(10);
  auto first = join_gpus(machine, folder / "share", 1, 10, need_of("first", 6));
  auto second = join_gpus(machine, folder / "share", 1, 10, need_of("second", 5));
  keep_gpu_warnings();
  const auto lease = first->take();
  Taker other(*second);
  GpuWatch watch(folder / "share");
  await([&] { return watch.look().stages.at(1).lacks_memory; });
  CHECK_FALSE(watch.look().stages.at(0).lacks_memory);
  await([] { return gpu_warned > 0; });
  CHECK(other.waits(0));
  first->give(*lease);
  other.join();
  CHECK_FALSE(watch.look().stages.at(1).lacks_memory);
  set_log_sink(nullptr, LogLevel::warning);
  CHECK(
      gpu_warnings ==
      "waiting for memory of a device: second needs 5 B, and of device 'GPU 0' 4 B are free beside "
      "the models of first (process " +
          std::to_string(::getpid()) +
          "); it goes on when programs that have memory have no work for a while, or end");
}

TEST_CASE("one slot of the processor keeps all GPUs busy, and is free meanwhile") {
  MadeMachine machine(10);
  auto board = join_gpus(machine, "", 8, 10, need_of("stage", 6));
  Slots slots(1);
  slots.add_away(8);
  std::atomic<int> on_gpus = 0;
  std::atomic<bool> all = false;
  int item = 0;
  for_each_ordered<int, int>(
      slots, [&] { return item < 40 ? std::optional(item++) : std::nullopt; },
      [&](int& n) {
        const Slots::Away away;
        const auto lease = board->take();
        if (++on_gpus == 8) all = true;
        // As long as not all are busy.
        for (int i = 0; i < 60'000 && !all; ++i)
          std::this_thread::sleep_for(milliseconds(1));
        --on_gpus;
        board->give(*lease);
        return n;
      },
      [](int&) {});
  CHECK(all);
  CHECK(machine.kept());
}

TEST_CASE("a program that is killed leaves its GPUs and its models' memory") {
  const TemporaryFolder folder;
  MadeMachine machine(10);
  GpuHolder holder(folder / "share", 2, 10, true);
  auto board = join_gpus(machine, folder / "share", 2, 10, need_of("stage", 6));
  Taker both(*board, 2);
  CHECK(both.waits(200));
  holder.kill();
  both.join();
  CHECK(machine.kept());
}

TEST_CASE("the memory of a killed program counts as long as a worker of it lives") {
  const TemporaryFolder folder;
  MadeMachine machine(10);
  GpuHolder holder(folder / "share", 1, 10, false, true);
  auto board = join_gpus(machine, folder / "share", 1, 10, need_of("stage", 6));
  CHECK(board->life() >= 0);
  holder.kill();
  Taker one(*board);
  CHECK(one.waits(300));
  holder.kill_worker();
  one.join();
  CHECK(machine.kept());
}

TEST_CASE("a program that is stopped keeps its models, and others use what is left") {
  const TemporaryFolder folder;
  MadeMachine machine(10);
  GpuHolder holder(folder / "share", 1, 10, false);
  REQUIRE(::kill(holder.pid(), SIGSTOP) == 0);
  auto board = join_gpus(machine, folder / "share", 2, 10, need_of("stage", 6));
  const auto lease = board->take();
  CHECK(lease->gpu->name == "GPU 1");
  board->give(*lease);
  const auto one = board->take();
  REQUIRE(one);
  std::atomic<bool> over = false;
  std::thread thread([&] {
    std::this_thread::sleep_for(milliseconds(1500));
    over = true;
  });
  CHECK_FALSE(board->take(&over));
  thread.join();
  board->give(*one);
  holder.kill();
  const auto three = board->take(), four = board->take();
  CHECK(three->gpu->name != four->gpu->name);
  board->give(*three);
  board->give(*four);
  CHECK(machine.kept());
}

namespace {

/// A program with items without end, and so with models on its GPUs. It says so, and ends with 7
/// when it is asked to stop.
class EndlessItems {
 public:
  EndlessItems(const std::string& share, int gpus, std::int64_t memory) {
    int fds[2];
    REQUIRE(::pipe(fds) == 0);
    pid_ = ::fork();
    if (pid_ == 0) ::_exit(run(share, gpus, memory, fds[1]));
    ::close(fds[1]);
    char ready;
    REQUIRE(::read(fds[0], &ready, 1) == 1);
    ::close(fds[0]);
  }
  ~EndlessItems() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  /// -1: not by itself.
  int stop() {
    ::kill(pid_, SIGTERM);
    int status = 0;
    await([&] {
      if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) pid_ = 0;
      return pid_ == 0;
    });
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  static int run(const std::string& share, int gpus, std::int64_t memory, int ready) {
    ::signal(SIGTERM, request_stop);
    try {
      GpuBoard board(share, gpus_of(gpus, memory), need_of("endless", memory), {});
      for (bool told = false;;) {
        const auto lease = board.take();
        board.give(*lease);
        if (!told && ::write(ready, "x", 1) != 1) return 1;
        told = true;
      }
    } catch (const Stopped&) {
      return 7;
    } catch (...) {
    }
    return 1;
  }
  pid_t pid_ = 0;
};

}  // namespace

TEST_CASE("who waits for a program that is stopped with the lock of the GPUs heeds a stop") {
  const TemporaryFolder folder;
  EndlessItems waits(folder / "share", 2, 10);
  {
    const StoppedLocker stopped(folder / "share.gpus");
    CHECK(waits.stop() == 7);
  }
  // And who comes later has all GPUs.
  MadeMachine machine(10);
  auto board = join_gpus(machine, folder / "share", 2, 10, need_of("stage", 6));
  Taker(*board, 2).join();
  CHECK(machine.kept());
}

TEST_CASE("a GPU that its next one does not take is not kept by those who take sessions") {
  const TemporaryFolder folder;
  std::vector<SharedGpu> gpus = gpus_of(1, std::int64_t{4} << 30);
  gpus[0].sessions = 2;
  const GpuNeed need = need_of("stage", 6);
  MadeMachine machine(gpus[0].memory);
  GpuBoard board(folder / "share", gpus, need, machine.actions(need));
  board.give(*board.take());
  // A later program with its model there, an item that waits, and a thread that is never awake.
  GpuMap later(folder / "share");
  later.join(gpus, need_of("later", 6));
  {
    const GpuMap::Locked lock(later);
    GpuRecord& record = later.own();
    record.place = 1000;
    record.waiting = 1;
    record.wanted = gpu_bit(0);
    record.model[0] = GpuModel::loaded;
  }
  GpuNeed decodes = need_of("decodes", 1);
  decodes.kind = GpuKind::decode;
  GpuBoard sessions(folder / "share", gpus, decodes, {});
  std::atomic<bool> done = false;
  std::thread beats([&] {
    while (!done) {
      {
        const GpuMap::Locked lock(later);
        later.own().beat = gpu_clock();
        later.own().place = 1000;  // as whoever joins last comes last
      }
      if (const auto lease = sessions.take_sessions(1, false)) sessions.give(*lease);
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  std::atomic<bool> over = false;
  std::thread timer([&] {
    for (int i = 0; i < 60'000 && !done; ++i)
      std::this_thread::sleep_for(milliseconds(1));
    over = true;
  });
  const auto lease = board.take(&over);
  done = true;
  CHECK(lease);
  if (lease) board.give(*lease);
  timer.join();
  beats.join();
  later.leave();
}

TEST_CASE("others see how many of a program's results are handed on") {
  const TemporaryFolder folder;
  MadeMachine machine(10);
  GpuNeed need = need_of("stage", 6);
  const auto flow = std::make_shared<OrderedFlow>();
  flow->ready = 7, flow->handed = 3;
  need.flow = flow;
  auto board = join_gpus(machine, folder / "share", 1, 10, need);
  GpuMap seen(folder / "share");
  await([&] {
    const GpuMap::Locked lock(seen);
    const GpuCounts& counts = seen.file().records[0].counts;
    return counts.ready == 7 && counts.handed == 3;
  });
}

TEST_CASE("a view shows nothing of an earlier pipe") {
  const TemporaryFolder folder;
  MadeMachine machine(10);
  {
    auto before = join_gpus(machine, folder / "share", 2, 10, need_of("before", 6));
    const auto lease = before->take();
    before->fail(*lease, "it fell off the bus");
  }
  GpuWatch watch(folder / "share");
  REQUIRE(watch.look().stages.size() == 1);
  CHECK(watch.look().stages[0].left_out.size() == 1);
  auto now = join_gpus(machine, folder / "share", 1, 10, need_of("now", 6));
  const GpuStates seen = watch.look();
  CHECK(seen.gpus.size() == 1);
  REQUIRE(seen.stages.size() == 1);
  CHECK(seen.stages[0].stage == "now");
}

TEST_CASE("a GPU that fails is left out by name; where none is left, that is an error") {
  set_log_sink([](LogLevel, std::string_view message) { gpu_warnings += message; },
               LogLevel::warning);
  MadeMachine machine(10);
  const TemporaryFolder folder;
  auto board = join_gpus(machine, folder / "share", 2, 10, need_of("stage", 6));
  auto other = join_gpus(machine, folder / "share", 2, 10, need_of("other", 4));
  const auto one = board->take();
  const std::string failed = one->gpu->name;
  board->fail(*one, "it fell off the bus");
  CHECK_THAT(gpu_warnings, Catch::Contains("device '" + failed + "' is left out for stage") &&
                               Catch::Contains("it fell off the bus"));
  for (int i = 0; i < 3; ++i) {
    const auto lease = board->take();
    CHECK(lease->gpu->name != failed);
    board->give(*lease);
  }
  const auto last = board->take();
  std::thread waits([&] { CHECK_THROWS_AS(board->take(), Error); });
  std::this_thread::sleep_for(milliseconds(60));
  board->fail(*last, "so did this");
  waits.join();
  CHECK_THROWS_WITH(board->take(), Catch::Contains("no device is left for stage") &&
                                       Catch::Contains("it fell off the bus") &&
                                       Catch::Contains("so did this"));
  try {
    board->take();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::device);
  }
  // Others may still have them.
  const auto two = other->take(), three = other->take();
  other->give(*two);
  other->give(*three);
  // A load that fails is a GPU that fails. Its own model is gone with the stage that failed.
  GpuBoard bad("", gpus_of(1, 10), need_of("bad", 1),
               {[](const SharedGpu&) { fail("no such kernel"); }, {}});
  CHECK_THROWS_WITH(bad.take(), Catch::Contains("no device is left for bad: 'GPU 0': no such"));
  set_log_sink(nullptr, LogLevel::warning);
}

TEST_CASE("GPUs that cannot be used are refused before any work") {
  const GpuNeed need = need_of("stage", 20);
  CHECK_THROWS_WITH(GpuBoard("", {}, need, {}), Catch::Contains("no device is given for stage"));
  CHECK_THROWS_WITH(GpuBoard("", gpus_of(2, 10), need, {}),
                    Catch::Contains("stage needs 20 B of a device's memory") &&
                        Catch::Contains("have 10 B at most; name a device that has more"));
  auto halved = gpus_of(2, 30);
  halved[0].kept = halved[1].kept = 11;
  CHECK_THROWS_WITH(GpuBoard("", halved, need, {}),
                    Catch::Contains("stage needs 31 B of a device"));
  GpuNeed encodes = need;
  encodes.kind = GpuKind::encode;
  CHECK_THROWS_WITH(GpuBoard("", gpus_of(2, 30), encodes, {}),
                    Catch::Contains("none of the devices can encode"));
  auto some = gpus_of(2, 30);
  some[1].sessions = 2;
  CHECK_THROWS_WITH(GpuBoard("", some, encodes, {}),
                    Catch::Contains("needs 320.0 MiB of a device's memory for videos"));
  keep_gpu_warnings();
  std::vector<SharedGpu> unlike = gpus_of(3, 30);
  unlike[1].memory = 10;
  const GpuBoard board("", unlike, need, {});
  set_log_sink(nullptr, LogLevel::warning);
  CHECK(board.gpus().size() == 2);
  CHECK(board.gpus()[1].name == "GPU 2");
  CHECK(gpu_warnings ==
        "device 'GPU 1' is not used: stage needs 20 B of its memory, and it has 10 B");
  auto twice = gpus_of(2, 30);
  twice[1].name = twice[0].name;
  CHECK_THROWS_WITH(GpuBoard("", twice, need, {}), Catch::Contains("'GPU 0' is named twice"));
  const TemporaryFolder folder;
  folder.write("share.gpus", "something else");
  CHECK_THROWS_WITH(GpuBoard(folder / "share", gpus_of(1, 30), need, {}),
                    Catch::Contains("share.gpus' is not empty, and not of VFM_SHARE"));
}

TEST_CASE("many threads of three programs: an item a GPU, and never more than memory holds") {
  const TemporaryFolder folder;
  MadeMachine machine(10);
  std::vector<std::unique_ptr<GpuBoard>> boards;
  for (const std::int64_t memory : {3, 5, 7})
    boards.push_back(join_gpus(machine, folder / "share", 3, 10,
                               need_of("stage " + std::to_string(memory), memory)));
  std::mutex mutex;
  std::map<std::string, int> on;
  std::atomic<int> done = 0, twice = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 12; ++t)
    threads.emplace_back([&, t] {
      GpuBoard& board = *boards[static_cast<std::size_t>(t % 3)];
      for (int i = 0; i < 40; ++i) {
        const auto lease = board.take();
        {
          const std::lock_guard lock(mutex);
          if (++on[lease->gpu->name] > 1) ++twice;
        }
        std::this_thread::sleep_for(milliseconds(1 + (i * 7 + t) % 5));
        {
          const std::lock_guard lock(mutex);
          --on[lease->gpu->name];
        }
        board.give(*lease);
        ++done;
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(done == 480);
  CHECK(twice == 0);
  CHECK(machine.kept());
  boards.clear();
  for (const char* stage : {"stage 3", "stage 5", "stage 7"})
    CHECK(machine.loaded(stage) == 0);
}
