// Workers as processes: what they answer, and what comes of it when one lies, fails or dies. The
// test is the worker, too.
// SPDX-License-Identifier: Apache-2.0
#include "workers/worker.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/json.h"
#include "base/log.h"
#include "base/run_end.h"
#include "base/stop.h"
#include "share/slots.h"
#include "support/usage_error.h"
#include "tensor/device.h"
#include "workers/service.h"
#include "workers/wire.h"
#include "workers/worker_pool.h"

using namespace vfm;
using namespace vfm::workers;

namespace {

void say_raw(const Word& word) {
  (void)share::send_message(3, &word, sizeof word, "");
}

/// Does what it is told.
class Obedient final : public Service {
 public:
  explicit Obedient(const Parcel& open) : open_(open.words) {}

  Parcel answer(const Parcel& request) override {
    ++asked_;
    const std::string& what = request.name;
    if (what == "decode") fail_as(Cause::decode, "cannot decode {}", request.words->dump());
    if (what == "usage") fail_usage("never so");
    if (what == "gpu") throw GpuError("the GPU is gone");
    if (what == "memory") throw std::bad_alloc();
    if (what == "crash") ::raise(SIGKILL);
    if (what == "full disk") throw_output_error(ENOSPC, "cannot write 'x'");
    if (what == "leave") ::_exit(5);
    if (what == "hang") ::pause();
    if (what == "rest") std::this_thread::sleep_for(std::chrono::milliseconds(600));
    if (what == "speak") {
      log_warning("a warning");
      log_debug("nobody wants to know");
      (void)!::write(STDERR_FILENO, "a line\nhalf", 11);
      (void)!::write(STDOUT_FILENO, " of one\n", 8);
    }
    if (what == "lie about size") say_raw({.say = Say::answer, .bytes = 1u << 30});
    if (what == "lie about kind") say_raw({.say = static_cast<Say>(99)});
    if (what == "say nothing whole") (void)!::write(3, "x", 1);
    Parcel answer = request;
    answer.words["open"] = open_;
    answer.words["process"] = ::getpid();
    answer.words["asked"] = asked_;
    answer.words["gpus"] = ::getenv("CUDA_VISIBLE_DEVICES");
    return answer;
  }

 private:
  const Json open_;
  int asked_ = 0;
};

/// Before Catch sees its arguments.
[[maybe_unused]] const bool g_is_no_worker = [] {
  std::ifstream file("/proc/self/cmdline");
  const std::string line((std::istreambuf_iterator<char>(file)), {});
  if (line.find(std::string("\0--serve-gpu\0003", 15)) == std::string::npos) return true;
  ::_exit(serve_gpu(3, {{"obedient", [](const Parcel& open, Device) -> std::unique_ptr<Service> {
                           if (open.words->contains("refuse")) fail_usage("no such folder");
                           return std::make_unique<Obedient>(open);
                         }}}));
}();

const share::SharedGpu kGpu{.index = -1, .name = "cpu 0", .memory = 1 << 30};
const WorkerPlan kPlan{.service = "obedient", .open = {"", Json{{"x", 7}}, {}}};

std::string what_of(Worker& worker, const std::string& name, ErrorKind kind,
                    Cause cause = Cause::other) {
  try {
    worker.ask({name, Json::object(), {}});
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    CHECK(error.cause() == cause);
    return error.what();
  }
  FAIL(name << ": no error");
  return "";
}

std::mutex g_lines_mutex;
std::multiset<std::string> g_lines;
void keep_line(LogLevel, std::string_view line) {
  const std::lock_guard lock(g_lines_mutex);
  g_lines.emplace(line);
}

}  // namespace

TEST_CASE("a worker opens its service and answers, with its errors as they are there") {
  Worker worker(kGpu, kPlan);
  for (const std::size_t bytes : {0u, 5u, 9u << 20}) {
    const std::string text(bytes, 'y');
    const Parcel answer = worker.ask({"", Json::object(), {bytes_tensor(text)}});
    CHECK(text_of(answer.tensors.at(0)) == text);
    CHECK(answer.words["open"] == Json{{"x", 7}});
    CHECK(answer.words["gpus"] == "");
    CHECK(answer.words["process"] != ::getpid());
  }
  CHECK(what_of(worker, "decode", ErrorKind::runtime, Cause::decode) == "cannot decode {}");
  CHECK(what_of(worker, "usage", ErrorKind::usage) == "never so");
  CHECK(what_of(worker, "memory", ErrorKind::runtime, Cause::memory) == "out of memory");
  CHECK(what_of(worker, "gpu", ErrorKind::device) == "the GPU is gone");
  CHECK(worker.ask({"", Json::object(), {}}).words["asked"] == 8);
}

TEST_CASE("a worker that cannot open says why, and one that no program has is none") {
  WorkerPlan plan = kPlan;
  plan.open.words = Json{{"refuse", true}};
  try {
    Worker worker(kGpu, plan);
    FAIL("it opened");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
  }
  plan.service = "another";
  CHECK_THROWS_AS(Worker(kGpu, plan), Error);
}

TEST_CASE("a worker that dies or lies is lost, and stays so") {
  for (const std::string name :
       {"crash", "leave", "lie about size", "lie about kind", "say nothing whole"}) {
    Worker worker(kGpu, kPlan);
    const std::string why = what_of(worker, name, ErrorKind::device);
    if (name == "crash") CHECK(why == "its worker has died of SIGKILL, as when memory is short");
    if (name == "leave") CHECK(why == "its worker has died with status 5");
    CHECK(what_of(worker, "", ErrorKind::device) == why);
  }
  Worker worker(kGpu, kPlan);
  const auto process = worker.ask({"", Json::object(), {}}).words["process"].get<pid_t>();
  ::kill(process, SIGKILL);
  CHECK(what_of(worker, "", ErrorKind::device).find("SIGKILL") != std::string::npos);
}

TEST_CASE("a full disk that a worker finds ends the run, and no GPU is at fault") {
  {
    WorkerPool pool("", {kGpu}, {.stage = "test", .memory = 1 << 20}, kPlan);
    CHECK_THROWS_AS(pool.ask({"full disk", Json::object(), {}}), Stopped);
    CHECK(run_ends());
    CHECK(run_end_message().find("cannot write 'x': No space left on device; make room") == 0);
    CHECK_THROWS_AS(pool.ask({"", Json::object(), {}}), Stopped);
  }
  forget_run_end();
  // Who asks a worker that another thread has ended since the program stops.
  Worker worker(kGpu, kPlan);
  CHECK_THROWS_AS(worker.ask({"full disk", Json::object(), {}}), Stopped);
  CHECK_THROWS_AS(worker.ask({"", Json::object(), {}}), Stopped);
  forget_run_end();
}

TEST_CASE("more than a worker is handed at once is an Error of that request alone") {
  WorkerPlan plan = kPlan;
  plan.most_bytes = 2 << 20;
  Worker worker(kGpu, plan);
  CHECK_THROWS_AS(worker.ask({"", Json::object(), {Tensor({1 << 20})}}), Error);
  CHECK(worker.ask({"", Json::object(), {Tensor::zeros({4})}}).tensors.size() == 1);
}

TEST_CASE("what a worker logs and says comes to the program's log") {
  set_log_sink(keep_line, LogLevel::warning);
  {
    Worker worker(kGpu, kPlan);
    worker.ask({"speak", Json::object(), {}});
  }
  set_log_sink(nullptr, LogLevel::warning);
  CHECK(g_lines == std::multiset<std::string>{"a warning", "cpu 0: a line", "cpu 0: half of one"});
}

TEST_CASE("a worker has ended when it is gone") {
  pid_t process = 0;
  {
    Worker worker(kGpu, kPlan);
    process = worker.ask({"", Json::object(), {}}).words["process"].get<pid_t>();
  }
  CHECK(::kill(process, 0) != 0);
}

TEST_CASE("a pool answers each request once, whoever is lost meanwhile") {
  set_log_sink(keep_line, LogLevel::warning);
  std::vector<share::SharedGpu> gpus;
  for (int i = 0; i < 3; ++i)
    gpus.push_back({.index = -1 - i, .name = "cpu " + std::to_string(i), .memory = 1 << 30});
  std::atomic<int> answered{0};
  {
    WorkerPool pool("", gpus, {.stage = "test", .memory = 1 << 20}, kPlan);
    // The first worker that is asked dies on the way.
    const Parcel first = pool.ask({"", Json::object(), {}});
    ::kill(first.words["process"].get<pid_t>(), SIGKILL);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 10; ++i) {
          const Parcel answer = pool.ask({"", Json{{"number", 10 * t + i}}, {}});
          answered += answer.words["number"] == 10 * t + i;
        }
      });
    for (std::thread& thread : threads)
      thread.join();
    CHECK_THROWS_AS(pool.ask({"decode", Json::object(), {}}), Error);
    // A request that kills whoever gets it is given up, and costs no more than a GPU.
    for (int i = 0; i < 3; ++i) {
      try {
        pool.ask({"crash", Json::object(), {}});
        FAIL("a worker lived");
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::runtime);
        CHECK(error.cause() == Cause::crash);
        CHECK_THAT(error.what(),
                   Catch::Contains("two workers died at it") && Catch::Contains("SIGKILL"));
      }
      CHECK(pool.ask({"", Json{{"number", i}}, {}}).words["number"] == i);
    }
    // A GPU that fails is another thing.
    try {
      pool.ask({"gpu", Json::object(), {}});
      FAIL("there is a GPU");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::device);
    }
  }
  set_log_sink(nullptr, LogLevel::warning);
  CHECK(answered == 40);
}

TEST_CASE("a worker on the processor computes with its caller's slot, who waits for it has none") {
  WorkerPool pool("", {kGpu}, {.stage = "test", .memory = 1 << 20}, kPlan);
  share::Slots slots(2);
  const Parcel rest{"rest", Json::object(), {}};
  const auto ask = [&] {
    const share::Slots::Hold hold(slots);
    pool.ask(rest);
  };
  const auto free_slots = [&] {
    std::atomic<bool> over = false;
    std::atomic<int> got = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([&] {
        const share::Slots::Hold hold(slots, share::Slots::Use::item, &over);
        got += hold ? 1 : 0;
        while (!over)
          std::this_thread::yield();
      });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    over = true;
    for (std::thread& thread : threads)
      thread.join();
    return got.load();
  };
  pool.open();
  std::thread one(ask), two(ask);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(free_slots() == 1);  // one is answered, the other waits
  one.join();
  two.join();
  CHECK(free_slots() == 2);
}

TEST_CASE("a pool whose workers cannot be opened tells the user's error as it is") {
  set_log_sink(keep_line, LogLevel::error);
  WorkerPlan plan = kPlan;
  plan.open.words = Json{{"refuse", true}};
  WorkerPool pool("", {kGpu}, {.stage = "test", .memory = 1 << 20}, plan);
  CHECK(usage_error([&] { pool.open(); }) == "no such folder");
  // Of no request: it is no fault of an input.
  CHECK_THROWS_WITH(pool.ask({}), Catch::Contains("no device is left for test"));
  set_log_sink(nullptr, LogLevel::warning);
  WorkerPool good("", {kGpu}, {.stage = "test", .memory = 1 << 20}, kPlan);
  good.open();
  CHECK(good.ask({"", Json::object(), {}}).words["asked"] == 1);
}

TEST_CASE("a GPU whose workers die at each request is left out after some") {
  set_log_sink(keep_line, LogLevel::error);
  WorkerPool pool("", {kGpu}, {.stage = "test", .memory = 1 << 20}, kPlan);
  int given_up = 0;
  for (;;) {
    try {
      pool.ask({"crash", Json::object(), {}});
      FAIL("a worker lived");
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::device) break;
      CHECK(error.cause() == Cause::crash);
      ++given_up;
    }
  }
  set_log_sink(nullptr, LogLevel::warning);
  CHECK(given_up == 9);
}
