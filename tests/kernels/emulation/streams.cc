// SPDX-License-Identifier: Apache-2.0
#include "streams.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "capture.h"
#include "memory.h"

struct CUgraph_st {
  std::vector<vfm::emulation::Capture::Node> nodes;
};

struct CUstream_st {
  std::deque<std::function<void()>> queue;
  std::uint64_t queued = 0, done = 0;
  bool computes = false;
  vfm::emulation::CapturePlace captured;
};

struct CUevent_st {
  CUstream_st* stream = nullptr;
  std::uint64_t place = 0;  // in the stream's work
  std::shared_ptr<std::chrono::steady_clock::time_point> time =
      std::make_shared<std::chrono::steady_clock::time_point>();
  vfm::emulation::CapturePlace captured;
};

namespace vfm::emulation {
namespace {

std::recursive_mutex mutex;
std::vector<std::unique_ptr<CUstream_st>> streams;
Late late = Late::none;
std::function<void()> at_capture;

bool put_off(const CUstream_st& stream) {
  return late == (stream.computes ? Late::kernels : Late::copies);
}

void run_to(CUstream_st& stream, std::uint64_t place) {
  while (stream.done < place) {
    const std::function<void()> work = std::move(stream.queue.front());
    stream.queue.pop_front();
    ++stream.done;
    work();
  }
}

// What was queued before streams captured is done too.
void run_all(bool only_blocking) {
  for (const auto& stream : streams)
    if (!only_blocking || stream->captured.blocking) run_to(*stream, stream->queued);
}

bool captures(const CUstream_st* stream) {
  return stream != nullptr && stream->captured.capture != nullptr;
}

}  // namespace

void set_late(Late who) {
  std::lock_guard lock(mutex);
  run_all(false);
  late = who;
}

int submit(CUstream_st* stream, std::function<void()> work, bool kernel) {
  std::lock_guard lock(mutex);
  if (stream == nullptr) {
    if (const int status = check_legacy_stream()) return status;
    run_all(true);
    work();
    return cudaSuccess;
  }
  if (captures(stream)) return add_to_capture(stream->captured, std::move(work));
  if (kernel && !stream->computes) {
    run_to(*stream, stream->queued);
    stream->computes = true;
  }
  stream->queue.push_back(std::move(work));
  ++stream->queued;
  if (!put_off(*stream)) run_to(*stream, stream->queued);
  return cudaSuccess;
}

int do_now(const std::function<void()>& work) {
  std::lock_guard lock(mutex);
  if (const int status = check_legacy_stream()) return status;
  if (const int status = check_unsafe_call()) return status;
  return submit(nullptr, work);
}

CUstream_st* make_stream(bool blocking) {
  std::lock_guard lock(mutex);
  CUstream_st* const stream = streams.emplace_back(std::make_unique<CUstream_st>()).get();
  stream->captured.blocking = blocking;
  return stream;
}

int finish(CUstream_st* stream) {
  std::lock_guard lock(mutex);
  if (const int status = query(stream); status != cudaErrorNotReady) return status;
  run_to(*stream, stream->queued);
  return cudaSuccess;
}

int finish_all() {
  std::lock_guard lock(mutex);
  if (const int status = check_device_call()) return status;
  run_all(false);
  return cudaSuccess;
}

int query(CUstream_st* stream) {
  std::lock_guard lock(mutex);
  if (stream == nullptr) return do_now([] {});
  if (const int status = check_stream_call(stream->captured)) return status;
  return stream->done < stream->queued ? cudaErrorNotReady : cudaSuccess;
}

CUevent_st* make_event() {
  return new CUevent_st;
}
void destroy(CUevent_st* event) {
  delete event;
}

int record(CUevent_st* event, CUstream_st* stream) {
  std::lock_guard lock(mutex);
  if (captures(stream)) return record_captured(stream->captured, event->captured);
  const int status =
      submit(stream, [time = event->time] { *time = std::chrono::steady_clock::now(); });
  if (status != cudaSuccess) return status;
  event->captured = {};
  event->stream = stream;
  event->place = stream == nullptr ? 0 : stream->queued;
  return cudaSuccess;
}

int wait(CUstream_st* stream, CUevent_st* event) {
  std::lock_guard lock(mutex);
  if (stream == nullptr) {
    if (const int status = check_legacy_stream()) return status;
    if (const auto& capture = event->captured.capture) {
      capture->valid = false;
      return cudaErrorStreamCaptureUnsupported;
    }
  } else if (captures(stream) || event->captured.capture != nullptr) {
    return wait_captured(stream->captured, event->captured);
  }
  if (event->stream == nullptr) return cudaSuccess;
  return submit(stream, [on = event->stream, place = event->place] { run_to(*on, place); });
}

int finish(CUevent_st* event) {
  std::lock_guard lock(mutex);
  if (const int status = query(event); status != cudaErrorNotReady) return status;
  run_to(*event->stream, event->place);
  return cudaSuccess;
}

int query(CUevent_st* event) {
  std::lock_guard lock(mutex);
  if (const int status = check_event_call(event->captured)) return status;
  return event->stream != nullptr && event->stream->done < event->place ? cudaErrorNotReady
                                                                        : cudaSuccess;
}

int milliseconds(float* ms, CUevent_st* begin, CUevent_st* end) {
  std::lock_guard lock(mutex);
  for (const CUevent_st* const event : {begin, end})
    if (const int status = check_event_call(event->captured)) return status;
  *ms = std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
  return cudaSuccess;
}

int begin_capture(CUstream_st* stream, cudaStreamCaptureMode mode) {
  std::function<void()> call;
  {
    std::lock_guard lock(mutex);
    if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
    if (const int status = open_capture(stream->captured, mode)) return status;
    call = at_capture;
  }
  if (call) call();  // when nothing is locked: it may use other threads
  return cudaSuccess;
}

int end_capture(CUstream_st* stream, CUgraph_st** graph) {
  std::lock_guard lock(mutex);
  *graph = nullptr;
  if (stream == nullptr) return cudaErrorIllegalState;
  std::vector<Capture::Node> nodes;
  if (const int status = close_capture(stream->captured, nodes)) return status;
  *graph = new CUgraph_st{std::move(nodes)};
  return cudaSuccess;
}

int is_capturing(CUstream_st* stream, cudaStreamCaptureStatus* status) {
  std::lock_guard lock(mutex);
  *status = cudaStreamCaptureStatusNone;
  if (stream == nullptr) return ask_legacy_stream();
  if (captures(stream))
    *status = stream->captured.capture->valid ? cudaStreamCaptureStatusActive
                                              : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

void exchange_mode(cudaStreamCaptureMode* mode) {
  std::swap(thread_mode(), *mode);
}

void when_capture_begins(std::function<void()> call) {
  std::lock_guard lock(mutex);
  at_capture = std::move(call);
}

std::size_t recorded_by_others() {
  std::lock_guard lock(mutex);
  return from_other_threads();
}

CUgraph_st* copy(CUgraph_st* graph) {
  return new CUgraph_st(*graph);
}
void destroy(CUgraph_st* graph) {
  delete graph;
}

int launch(CUgraph_st* graph, CUstream_st* stream) {
  return submit(
      stream,
      [nodes = graph->nodes] {
        for (const Capture::Node& node : nodes)
          node.work();
      },
      true);
}

int unsafe_call() {
  std::lock_guard lock(mutex);
  return check_unsafe_call();
}

int free(void* pointer) {
  std::lock_guard lock(mutex);
  if (const int status = check_unsafe_call()) return status;
  run_all(false);
  release(pointer);
  return cudaSuccess;
}

}  // namespace vfm::emulation
