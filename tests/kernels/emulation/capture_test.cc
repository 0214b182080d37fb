// The emulation's rules of stream capture (capture.h), each as CUDA's reference has it: what fails
// on a GPU fails here, and with its error. This file: who may do what while something is captured.
// SPDX-License-Identifier: Apache-2.0
#include "capture_test.h"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

using namespace vfm;
using namespace vfm::test;

namespace {

// The calls that may be unsafe, on a stream and an event that nothing captures.
std::vector<Call> unsafe_calls() {
  static const cudaStream_t other = make_stream();
  static const Event event;
  static char source = 3, target = 0;
  REQUIRE(cudaEventRecord(event, other) == cudaSuccess);
  const auto take = [](auto malloc) {
    void* room = nullptr;
    const int status = malloc(&room, 8);
    emulation::release(room);
    return status;
  };
  return {{"malloc", [take] { return take(cudaMalloc); }},
          {"free", [] { return cudaFree(nullptr); }},
          {"malloc pinned", [take] { return take(cudaMallocHost); }},
          {"free pinned", [] { return cudaFreeHost(nullptr); }},
          {"copy", [] { return cudaMemcpy(&target, &source, 1, cudaMemcpyHostToDevice); }},
          {"set", [] { return cudaMemset(&target, 1, 1); }},
          {"query an event", [] { return cudaEventQuery(event); }},
          {"wait for an event", [] { return cudaEventSynchronize(event); }},
          {"query a stream", [] { return cudaStreamQuery(other); }},
          {"wait for a stream", [] { return cudaStreamSynchronize(other); }},
          {"time", [] {
             float ms = 0;
             return cudaEventElapsedTime(&ms, event, event);
           }}};
}

}  // namespace

TEST_CASE("a call that may be unsafe is prohibited by the modes of capture and thread") {
  // The reference's three sentences, for each of the nine pairs: in the thread that captures, and
  // in another.
  const auto [capture, thread, here, there] =
      GENERATE(table<cudaStreamCaptureMode, cudaStreamCaptureMode, bool, bool>({
          {kGlobal, kGlobal, true, true},
          {kGlobal, kLocal, true, false},
          {kGlobal, kRelaxed, false, false},
          {kLocal, kGlobal, true, false},
          {kLocal, kLocal, true, false},
          {kLocal, kRelaxed, false, false},
          {kRelaxed, kGlobal, false, false},
          {kRelaxed, kLocal, false, false},
          {kRelaxed, kRelaxed, false, false},
      }));
  const cudaStream_t stream = make_stream();
  for (const Call& one : unsafe_calls())
    for (const bool other_thread : {false, true}) {
      INFO(one.name << ", mode " << capture << " and thread's " << thread
                    << (other_thread ? ", another" : ""));
      auto call = [&, mode = thread]() mutable {
        cudaThreadExchangeStreamCaptureMode(&mode);
        const int status = one.call();
        cudaThreadExchangeStreamCaptureMode(&mode);
        return status;
      };
      const bool prohibited = other_thread ? there : here;
      begin(stream, capture);
      REQUIRE(work(stream) == cudaSuccess);
      const int status = other_thread ? elsewhere(call) : call();
      CHECK(status == (prohibited ? cudaErrorStreamCaptureUnsupported : cudaSuccess));
      CHECK(end(stream) == (prohibited ? cudaErrorStreamCaptureInvalidated : cudaSuccess));
    }
}

TEST_CASE("what is prohibited is not done") {
  const cudaStream_t stream = make_stream();
  void *block = nullptr, *another = &block;
  REQUIRE(cudaMalloc(&block, 100) == cudaSuccess);
  const std::size_t used = emulation::used_memory();
  char target = 1;
  begin(stream, kGlobal);
  CHECK(cudaMalloc(&another, 50) == cudaErrorStreamCaptureUnsupported);
  CHECK(another == nullptr);
  CHECK(cudaFree(block) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaMemset(&target, 2, 1) == cudaErrorStreamCaptureUnsupported);
  CHECK(emulation::used_memory() == used);
  CHECK(target == 1);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaFree(block) == cudaSuccess);
  CHECK(emulation::used_memory() == used - 100);
}

TEST_CASE("a thread's mode is global, and given back when it is changed") {
  cudaStreamCaptureMode mode = kRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  CHECK(mode == kGlobal);
  CHECK(elsewhere([] {
          cudaStreamCaptureMode other = kLocal;
          cudaThreadExchangeStreamCaptureMode(&other);
          return other;
        }) == kGlobal);
  cudaThreadExchangeStreamCaptureMode(&mode);
  CHECK(mode == kRelaxed);
}

TEST_CASE("nobody waits for the device while a stream captures, in any mode") {
  const auto mode = GENERATE(kGlobal, kLocal, kRelaxed);
  const bool other_thread = GENERATE(false, true);
  const cudaStream_t stream = make_stream();
  begin(stream, mode);
  CHECK((other_thread ? elsewhere(cudaDeviceSynchronize) : cudaDeviceSynchronize()) ==
        cudaErrorStreamCaptureUnsupported);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("the legacy stream is of no use while a blocking stream captures") {
  const auto mode = GENERATE(kGlobal, kLocal, kRelaxed);
  const cudaStream_t stream = make_stream(cudaStreamDefault);
  static const Event event, recorded, never;
  static const cudaStream_t other = make_stream();
  REQUIRE(cudaEventRecord(recorded, other) == cudaSuccess);
  static char target = 0;
  const std::vector<Call> calls = {
      {"work", [] { return work(nullptr); }},
      {"copy", [] { return cudaMemcpy(&target, &byte, 1, cudaMemcpyDeviceToHost); }},
      {"set", [] { return cudaMemset(&target, 1, 1); }},
      {"record", [] { return cudaEventRecord(event); }},
      {"wait", [] { return cudaStreamWaitEvent(nullptr, recorded); }},
      {"wait for nothing", [] { return cudaStreamWaitEvent(nullptr, never); }},
      {"query", [] { return cudaStreamQuery(nullptr); }},
      {"synchronize", [] { return cudaStreamSynchronize(nullptr); }}};
  for (const Call& one : calls) {
    INFO(one.name << ", mode " << mode);
    begin(stream, mode);
    CHECK(elsewhere(one.call) == cudaErrorStreamCaptureImplicit);
    CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
    CHECK(one.call() == cudaSuccess);
  }
  // Who asks whether it captures gets the error, and does no harm.
  begin(stream, mode);
  cudaStreamCaptureStatus status{};
  CHECK(cudaStreamIsCapturing(nullptr, &status) == cudaErrorStreamCaptureImplicit);
  CHECK(end(stream) == cudaSuccess);
  CHECK(cudaStreamIsCapturing(nullptr, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusNone);
}

TEST_CASE("the legacy stream has nothing to do with streams that do not block") {
  const cudaStream_t stream = make_stream(), blocking = make_stream(cudaStreamDefault);
  begin(stream, kGlobal);
  CHECK(work(nullptr) == cudaSuccess);
  cudaStreamCaptureStatus status{};
  CHECK(cudaStreamIsCapturing(nullptr, &status) == cudaSuccess);
  // Until one that does joins the capture.
  const Event event;
  CHECK(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(blocking, event) == cudaSuccess);
  CHECK(work(nullptr) == cudaErrorStreamCaptureImplicit);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  // Nor can it be captured itself.
  CHECK(cudaStreamBeginCapture(nullptr, kRelaxed) == cudaErrorStreamCaptureUnsupported);
  begin(stream);
  CHECK(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(nullptr, event) == cudaErrorStreamCaptureUnsupported);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("the legacy stream and blocking streams wait for each other") {
  const cudaStream_t blocking = make_stream(cudaStreamDefault), stream = make_stream();
  char a = 0, b = 0;
  emulation::set_late(emulation::Late::copies);
  CHECK(cudaMemsetAsync(&a, 1, 1, blocking) == cudaSuccess);
  CHECK(cudaMemsetAsync(&b, 1, 1, stream) == cudaSuccess);
  CHECK(cudaStreamQuery(blocking) == cudaErrorNotReady);
  CHECK(work(nullptr) == cudaSuccess);
  CHECK(a == 1);
  CHECK(b == 0);
  emulation::set_late(emulation::Late::none);
  CHECK(b == 1);
}

TEST_CASE("a capture ends where it began, in the thread that began it") {
  const auto mode = GENERATE(kGlobal, kLocal, kRelaxed);
  const cudaStream_t stream = make_stream(), other = make_stream();
  begin(stream, mode);
  const int status = elsewhere([&] { return end(stream); });
  if (mode == kRelaxed) {
    CHECK(status == cudaSuccess);
  } else {
    CHECK(status == cudaErrorStreamCaptureWrongThread);
    CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  }
  CHECK(end(stream) == cudaErrorIllegalState);
  CHECK(end(nullptr) == cudaErrorIllegalState);

  const Event event;
  begin(stream, mode);
  CHECK(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(other, event) == cudaSuccess);
  CHECK(end(other) == cudaErrorStreamCaptureUnmatched);
  CHECK(status_of(other) == cudaStreamCaptureStatusInvalidated);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  CHECK(status_of(other) == cudaStreamCaptureStatusNone);

  begin(stream, mode);
  CHECK(cudaStreamBeginCapture(stream, mode) == cudaErrorIllegalState);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("what other threads queue on a stream that captures is captured, which is counted") {
  const cudaStream_t stream = make_stream(), other = make_stream();
  const Event event;
  const std::size_t before = emulation::recorded_by_others();
  byte = 0;
  begin(stream, kGlobal);
  CHECK(work(stream, 5) == cudaSuccess);
  CHECK(emulation::recorded_by_others() == before);
  CHECK(elsewhere([&] { return work(stream, 7); }) == cudaSuccess);
  CHECK(emulation::recorded_by_others() == before + 1);
  CHECK(elsewhere([&] { return cudaEventRecord(event, stream); }) == cudaSuccess);
  CHECK(elsewhere([&] { return cudaStreamWaitEvent(other, event); }) == cudaSuccess);
  CHECK(emulation::recorded_by_others() == before + 3);
  CHECK(byte == 0);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  launch(graph, stream);
  CHECK(byte == 7);
}

TEST_CASE("a prohibited call spoils no capture that does not prohibit it") {
  const cudaStream_t relaxed = make_stream(), local = make_stream(), mine = make_stream();
  std::promise<void> begun, leave;
  auto other = std::async(std::launch::async, [&] {
    begin(relaxed, kRelaxed);
    begin(local, kLocal);
    begun.set_value();
    leave.get_future().wait();
    return std::pair{end(relaxed), end(local)};
  });
  begun.get_future().wait();
  void* block = nullptr;
  CHECK(cudaMalloc(&block, 1) == cudaSuccess);
  CHECK(cudaFree(block) == cudaSuccess);
  begin(mine, kLocal);
  CHECK(cudaMalloc(&block, 1) == cudaErrorStreamCaptureUnsupported);
  CHECK(end(mine) == cudaErrorStreamCaptureInvalidated);
  leave.set_value();
  CHECK(other.get() == std::pair<int, int>{cudaSuccess, cudaSuccess});
}

TEST_CASE("one thread captures while another takes memory, copies, records events and frees") {
  const auto mode = GENERATE(kGlobal, kLocal, kRelaxed);
  const cudaStream_t stream = make_stream(), copies = make_stream();
  const Event event;
  std::promise<void> begun;
  std::atomic<bool> stop = false;
  const char source = 9;
  struct Seen {
    int rounds = 0, refused = 0, others = 0;
  };
  auto other = std::async(std::launch::async, [&] {
    begun.get_future().wait();
    Seen seen;
    const auto count = [&](int status) {
      seen.refused += status == cudaErrorStreamCaptureUnsupported ? 1 : 0;
      seen.others += status != cudaSuccess && status != cudaErrorStreamCaptureUnsupported ? 1 : 0;
      return status == cudaSuccess;
    };
    do {
      void* block = nullptr;
      const bool taken = count(cudaMalloc(&block, 64));
      char target = 0;
      count(cudaMemcpyAsync(&target, &source, 1, cudaMemcpyHostToDevice, copies));
      count(cudaEventRecord(event, copies));
      count(cudaStreamWaitEvent(copies, event));
      count(cudaEventSynchronize(event));
      if (taken) count(cudaFree(block));
      if (target != source) ++seen.others;
    } while (++seen.rounds < 20 || !stop);
    return seen;
  });
  std::vector<char> marks(50, 0);
  begin(stream, mode);
  begun.set_value();
  int refused_here = 0;
  for (char& mark : marks) {
    refused_here += cudaMemsetAsync(&mark, 1, 1, stream) == cudaSuccess ? 0 : 1;
    std::this_thread::yield();
  }
  stop = true;
  const Seen seen = other.get();
  cudaGraph_t graph = nullptr;
  const int status = cudaStreamEndCapture(stream, &graph);
  CHECK(seen.others == 0);
  CHECK(seen.rounds >= 20);
  if (mode == kGlobal) {
    CHECK(seen.refused == 2 * seen.rounds);  // memory and the wait; the copies go on
    CHECK(status == cudaErrorStreamCaptureInvalidated);
    return;
  }
  CHECK(seen.refused == 0);
  CHECK(refused_here == 0);
  REQUIRE(status == cudaSuccess);
  CHECK(marks == std::vector<char>(50, 0));
  launch(graph, stream);
  CHECK(marks == std::vector<char>(50, 1));
}
