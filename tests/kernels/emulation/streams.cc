// SPDX-License-Identifier: Apache-2.0
#include "streams.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "memory.h"

struct CUgraph_st {
  std::vector<std::function<void()>> work;
};

struct CUstream_st {
  std::deque<std::function<void()>> queue;
  std::uint64_t queued = 0, done = 0;
  bool computes = false, broken = false;
  std::unique_ptr<CUgraph_st> recorded;
};

struct CUevent_st {
  CUstream_st* stream = nullptr;
  std::uint64_t place = 0;  // in the stream's work
  std::shared_ptr<std::chrono::steady_clock::time_point> time =
      std::make_shared<std::chrono::steady_clock::time_point>();
};

namespace vfm::emulation {
namespace {

std::recursive_mutex mutex;
std::vector<std::unique_ptr<CUstream_st>> streams;
Late late = Late::none;

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

// For what a stream that records must not be asked.
bool refuse(CUstream_st* stream) {
  if (stream == nullptr || stream->recorded == nullptr) return false;
  return stream->broken = true;
}

}  // namespace

void set_late(Late who) {
  std::lock_guard lock(mutex);
  finish_all();
  late = who;
}

void submit(CUstream_st* stream, std::function<void()> work, bool kernel) {
  std::lock_guard lock(mutex);
  if (stream == nullptr) return work();
  if (stream->recorded != nullptr) {
    stream->recorded->work.push_back(std::move(work));
    return;
  }
  if (kernel && !stream->computes) {
    run_to(*stream, stream->queued);
    stream->computes = true;
  }
  stream->queue.push_back(std::move(work));
  ++stream->queued;
  if (!put_off(*stream)) run_to(*stream, stream->queued);
}

CUstream_st* make_stream() {
  std::lock_guard lock(mutex);
  return streams.emplace_back(std::make_unique<CUstream_st>()).get();
}

bool finish(CUstream_st* stream) {
  std::lock_guard lock(mutex);
  if (refuse(stream)) return false;
  if (stream != nullptr) run_to(*stream, stream->queued);
  return true;
}

void finish_all() {
  std::lock_guard lock(mutex);
  for (const auto& stream : streams)
    run_to(*stream, stream->queued);
}

CUevent_st* make_event() {
  return new CUevent_st;
}
void destroy(CUevent_st* event) {
  delete event;
}

bool record(CUevent_st* event, CUstream_st* stream) {
  std::lock_guard lock(mutex);
  if (refuse(stream)) return false;
  submit(stream, [time = event->time] { *time = std::chrono::steady_clock::now(); });
  event->stream = stream;
  event->place = stream == nullptr ? 0 : stream->queued;
  return true;
}

bool wait(CUstream_st* stream, CUevent_st* event) {
  std::lock_guard lock(mutex);
  if (refuse(stream)) return false;
  if (event->stream != nullptr)
    submit(stream, [on = event->stream, place = event->place] { run_to(*on, place); });
  return true;
}

void finish(CUevent_st* event) {
  std::lock_guard lock(mutex);
  if (event->stream != nullptr) run_to(*event->stream, event->place);
}

float milliseconds(CUevent_st* begin, CUevent_st* end) {
  return std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
}

bool begin_capture(CUstream_st* stream) {
  std::lock_guard lock(mutex);
  if (stream == nullptr || refuse(stream)) return false;
  stream->recorded = std::make_unique<CUgraph_st>();
  stream->broken = false;
  return true;
}

CUgraph_st* end_capture(CUstream_st* stream) {
  std::lock_guard lock(mutex);
  std::unique_ptr<CUgraph_st> graph = std::move(stream->recorded);
  return stream->broken ? nullptr : graph.release();
}

CUgraph_st* copy(CUgraph_st* graph) {
  return new CUgraph_st(*graph);
}
void destroy(CUgraph_st* graph) {
  delete graph;
}

void launch(CUgraph_st* graph, CUstream_st* stream) {
  submit(
      stream,
      [work = graph->work] {
        for (const auto& one : work)
          one();
      },
      true);
}

void free(void* pointer) {
  std::lock_guard lock(mutex);
  finish_all();
  release(pointer);
}

}  // namespace vfm::emulation
