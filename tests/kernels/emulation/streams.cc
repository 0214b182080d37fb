// SPDX-License-Identifier: Apache-2.0
#include "streams.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "capture.h"
#include "emulation.h"
#include "memory.h"

struct CUgraph_st {
  std::vector<vfm::emulation::Capture::Node> nodes;
};

struct CUstream_st {
  std::deque<std::function<bool()>> queue;  // false: it cannot be done yet
  std::uint64_t queued = 0, done = 0;
  bool computes = false, meets = false;
  bool running = false;
  int device = 0;
  std::map<int, CUstream_st*> of_others;  // what the handle is for other devices
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

Monitor mutex;
std::vector<std::unique_ptr<CUstream_st>> streams;
Late late = Late::none;
bool waits_are_forgotten = false;
std::function<void()> at_capture;

bool put_off(const CUstream_st& stream) {
  if (stream.meets) return late == Late::meetings;
  return late == (stream.computes ? Late::kernels : Late::copies);
}

// Whether all of it is done. A stream whose work asks, by way of other devices, for work behind it
// stands still, too.
bool run_to(CUstream_st& stream, std::uint64_t place) {
  if (stream.running) return stream.done >= place;
  stream.running = true;
  bool goes_on = true;
  while (stream.done < place && goes_on) {
    goes_on = stream.queue.front()();
    if (goes_on) stream.queue.pop_front(), ++stream.done;
  }
  stream.running = false;
  return goes_on;
}

// The host waits for other devices' hosts.
void wait_to(CUstream_st& stream, std::uint64_t place) {
  using namespace std::chrono_literals;
  for (std::uint64_t seen = mutex.changes(); !run_to(stream, place); seen = mutex.changes())
    if (!mutex.wait_for_change(seen, 60s)) stop("a stream waits for ever");
}

// What was queued before streams captured is done too.
void run_all(bool only_blocking) {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    CUstream_st& stream = *streams[i];
    if (stream.device != device() || (only_blocking && !stream.captured.blocking)) continue;
    wait_to(stream, stream.queued);
  }
}

std::function<bool()> done_at_once(std::function<void()> work) {
  return [work = std::move(work)] {
    work();
    return true;
  };
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

void forget_waits(bool forget) {
  std::lock_guard lock(mutex);
  waits_are_forgotten = forget;
}

int& device() {
  thread_local int index = 0;
  return index;
}

Monitor& monitor() {
  return mutex;
}

CUstream_st* own_stream(CUstream_st* stream) {
  std::lock_guard held(mutex);
  if (stream == nullptr || stream->device == device()) return stream;
  CUstream_st*& own = stream->of_others[device()];
  if (own == nullptr) own = make_stream(stream->captured.blocking);
  return own;
}

std::uint64_t submit_meeting(CUstream_st* stream, std::function<bool()> work) {
  std::lock_guard held(mutex);
  stream = own_stream(stream);
  if (!std::exchange(stream->meets, true)) run_to(*stream, stream->queued);
  stream->queue.push_back(std::move(work));
  const std::uint64_t place = ++stream->queued;
  if (!put_off(*stream)) run_to(*stream, place);
  mutex.change();
  return place;
}

std::uint64_t end_of(CUstream_st* stream) {
  std::lock_guard held(mutex);
  return stream->queued;
}

bool advance(CUstream_st* stream, std::uint64_t place) {
  std::lock_guard held(mutex);
  return run_to(*stream, place);
}

int submit(CUstream_st* stream, std::function<void()> work, bool kernel) {
  std::lock_guard lock(mutex);
  if (stream == nullptr) {
    if (const int status = check_legacy_stream()) return status;
    run_all(true);
    work();
    return cudaSuccess;
  }
  stream = own_stream(stream);
  if (captures(stream)) return add_to_capture(stream->captured, std::move(work));
  if (kernel && !std::exchange(stream->computes, true)) run_to(*stream, stream->queued);
  stream->queue.push_back(done_at_once(std::move(work)));
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
  stream->device = device();
  return stream;
}

int finish(CUstream_st* stream) {
  std::lock_guard lock(mutex);
  stream = own_stream(stream);
  if (const int status = query(stream); status != cudaErrorNotReady) return status;
  wait_to(*stream, stream->queued);
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
  stream = own_stream(stream);
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
  stream = own_stream(stream);
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
  stream = own_stream(stream);
  if (stream == nullptr) {
    if (const int status = check_legacy_stream()) return status;
    if (const auto& capture = event->captured.capture) {
      capture->valid = false;
      return cudaErrorStreamCaptureUnsupported;
    }
  } else if (captures(stream) || event->captured.capture != nullptr) {
    return wait_captured(stream->captured, event->captured);
  }
  if (event->stream == nullptr || waits_are_forgotten) return cudaSuccess;
  const auto reached = [on = event->stream, place = event->place] { return run_to(*on, place); };
  if (stream == nullptr) return submit(nullptr, [&] { wait_to(*event->stream, event->place); });
  stream->queue.push_back(reached);
  ++stream->queued;
  if (!put_off(*stream)) run_to(*stream, stream->queued);
  return cudaSuccess;
}

int finish(CUevent_st* event) {
  std::lock_guard lock(mutex);
  if (const int status = query(event); status != cudaErrorNotReady) return status;
  wait_to(*event->stream, event->place);
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
    stream = own_stream(stream);
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
  stream = own_stream(stream);
  if (stream == nullptr) return cudaErrorIllegalState;
  std::vector<Capture::Node> nodes;
  if (const int status = close_capture(stream->captured, nodes)) return status;
  *graph = new CUgraph_st{std::move(nodes)};
  return cudaSuccess;
}

int is_capturing(CUstream_st* stream, cudaStreamCaptureStatus* status) {
  std::lock_guard lock(mutex);
  *status = cudaStreamCaptureStatusNone;
  stream = own_stream(stream);
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
