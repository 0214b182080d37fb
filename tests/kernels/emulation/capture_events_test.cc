// The emulation's rules of stream capture, continued: the streams and events of a capture.
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "capture_test.h"

using namespace vfm::test;

TEST_CASE("an event that is captured draws a stream into the capture, which must come back") {
  const cudaStream_t stream = make_stream(), branch = make_stream();
  const Event fork, join;
  char order[3] = {};
  const auto copy = [&](int to, const char& from, cudaStream_t on) {
    return cudaMemcpyAsync(order + to, &from, 1, cudaMemcpyDeviceToDevice, on);
  };
  const char one = 1;
  const auto capture = [&](bool joined) {
    begin(stream);
    CHECK(copy(0, one, stream) == cudaSuccess);
    CHECK(cudaEventRecord(fork, stream) == cudaSuccess);
    CHECK(status_of(branch) == cudaStreamCaptureStatusNone);
    CHECK(cudaStreamWaitEvent(branch, fork) == cudaSuccess);
    CHECK(status_of(branch) == cudaStreamCaptureStatusActive);
    CHECK(copy(1, order[0], branch) == cudaSuccess);
    CHECK(cudaEventRecord(join, branch) == cudaSuccess);
    if (joined) {
      CHECK(cudaStreamWaitEvent(stream, join) == cudaSuccess);
    }
    CHECK(copy(2, order[1], stream) == cudaSuccess);
  };
  capture(true);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(status_of(branch) == cudaStreamCaptureStatusNone);
  CHECK(order[0] == 0);
  launch(graph, stream);
  CHECK(order[2] == 1);

  capture(false);
  CHECK(end(stream) == cudaErrorStreamCaptureUnjoined);
  CHECK(status_of(branch) == cudaStreamCaptureStatusNone);
  CHECK(work(branch) == cudaSuccess);
  CHECK(cudaStreamSynchronize(branch) == cudaSuccess);

  // What the branch does after it was joined is not joined.
  capture(true);
  CHECK(work(branch) == cudaSuccess);
  CHECK(end(stream) == cudaErrorStreamCaptureUnjoined);

  // A stream without work of its own has nothing to join.
  begin(stream);
  CHECK(work(stream) == cudaSuccess);
  CHECK(cudaEventRecord(fork, stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(branch, fork) == cudaSuccess);
  CHECK(end(stream) == cudaSuccess);
}

TEST_CASE("a capture waits for nothing outside of it") {
  const bool recorded = GENERATE(false, true);
  const cudaStream_t stream = make_stream(), other = make_stream();
  const Event event;
  if (recorded) {
    REQUIRE(cudaEventRecord(event, other) == cudaSuccess);
    REQUIRE(cudaEventSynchronize(event) == cudaSuccess);  // done or not, it is outside
  }
  begin(stream);
  CHECK(cudaStreamWaitEvent(stream, event) == cudaErrorStreamCaptureIsolation);
  CHECK(status_of(stream) == cudaStreamCaptureStatusInvalidated);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  // Nor for another capture that has ended.
  begin(stream);
  CHECK(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(end(stream) == cudaSuccess);
  begin(stream);
  CHECK(cudaStreamWaitEvent(stream, event) == cudaErrorStreamCaptureIsolation);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("nobody asks for the state of a captured event, until it is recorded once more") {
  const cudaStream_t stream = make_stream();
  const Event event, plain;
  REQUIRE(cudaEventRecord(plain, stream) == cudaSuccess);
  float ms = 0;
  const std::vector<Call> calls = {
      {"query", [&] { return cudaEventQuery(event); }},
      {"synchronize", [&] { return cudaEventSynchronize(event); }},
      {"time from", [&] { return cudaEventElapsedTime(&ms, event, plain); }},
      {"time to", [&] { return cudaEventElapsedTime(&ms, plain, event); }}};
  for (const Call& one : calls) {
    INFO(one.name);
    begin(stream);
    CHECK(cudaEventRecord(event, stream) == cudaSuccess);
    CHECK(elsewhere(one.call) == cudaErrorCapturedEvent);
    CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
    CHECK(one.call() == cudaErrorCapturedEvent);
    CHECK(cudaStreamWaitEvent(stream, event) == cudaErrorCapturedEvent);
    CHECK(cudaEventRecord(event, stream) == cudaSuccess);
    CHECK(one.call() == cudaSuccess);
    CHECK(cudaStreamWaitEvent(stream, event) == cudaSuccess);
  }
}

TEST_CASE("nobody waits for a stream that captures, and nothing goes on after that") {
  const bool waits = GENERATE(false, true);
  const cudaStream_t stream = make_stream(), branch = make_stream();
  const Event event, before;
  const auto ask = [&] { return waits ? cudaStreamSynchronize(stream) : cudaStreamQuery(stream); };
  begin(stream);
  CHECK(cudaEventRecord(before, stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(branch, before) == cudaSuccess);
  CHECK(elsewhere(ask) == cudaErrorStreamCaptureUnsupported);
  CHECK(ask() == cudaErrorStreamCaptureInvalidated);
  for (const cudaStream_t one : {stream, branch}) {
    CHECK(work(one) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaEventRecord(event, one) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamWaitEvent(one, before) == cudaErrorStreamCaptureInvalidated);
    CHECK(status_of(one) == cudaStreamCaptureStatusInvalidated);
  }
  // Nobody joins it any more.
  const cudaStream_t late = make_stream();
  CHECK(cudaStreamWaitEvent(late, before) == cudaErrorInvalidValue);
  CHECK(status_of(late) == cudaStreamCaptureStatusNone);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  CHECK(status_of(stream) == cudaStreamCaptureStatusNone);
  CHECK(ask() == cudaSuccess);
  begin(stream);
  CHECK(work(stream) == cudaSuccess);
  CHECK(end(stream) == cudaSuccess);
}

TEST_CASE("two captures do not become one") {
  const cudaStream_t a = make_stream(), b = make_stream();
  const Event event;
  begin(a);
  begin(b);
  CHECK(cudaEventRecord(event, a) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(b, event) == cudaErrorStreamCaptureMerge);
  CHECK(end(a) == cudaErrorStreamCaptureInvalidated);
  CHECK(end(b) == cudaErrorStreamCaptureInvalidated);
}
