// SPDX-License-Identifier: Apache-2.0
#include "capture.h"

#include <algorithm>
#include <utility>

namespace vfm::emulation {
namespace {

std::vector<std::shared_ptr<Capture>> under_way;
std::size_t foreign = 0;

int refuse(Capture& capture, int error) {
  capture.valid = false;
  return error;
}

bool mine(const Capture& capture) {
  return capture.thread == std::this_thread::get_id();
}

// Whether the calling thread may not make unsafe calls because of it.
bool prohibits(const Capture& capture) {
  switch (thread_mode()) {
    case cudaStreamCaptureModeRelaxed:
      return false;
    case cudaStreamCaptureModeThreadLocal:
      return mine(capture) && capture.mode != cudaStreamCaptureModeRelaxed;
    default:
      return mine(capture) ? capture.mode != cudaStreamCaptureModeRelaxed
                           : capture.mode == cudaStreamCaptureModeGlobal;
  }
}

bool is_blocking(const Capture& capture) {
  return std::ranges::any_of(capture.streams, &CapturePlace::blocking);
}

// Invalidates all captures that are so; the error if there is one.
template <class So>
int refuse_all(So so, int error) {
  int status = cudaSuccess;
  for (const auto& capture : under_way)
    if (so(*capture)) status = refuse(*capture, error);
  return status;
}

void count_thread(const Capture& capture) {
  if (!mine(capture)) ++foreign;
}

// Whether each node of each stream is before the end of the first stream.
bool all_joined(const Capture& capture) {
  std::vector<bool> before(capture.nodes.size());
  for (const std::size_t node : capture.streams.front()->last)
    before[node] = true;
  for (std::size_t node = before.size(); node-- > 0;)
    if (before[node])
      for (const std::size_t earlier : capture.nodes[node].after)
        before[earlier] = true;
  return std::ranges::all_of(capture.streams, [&](const CapturePlace* stream) {
    return std::ranges::all_of(stream->last, [&](std::size_t node) { return before[node]; });
  });
}

}  // namespace

cudaStreamCaptureMode& thread_mode() {
  static thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

std::size_t from_other_threads() {
  return foreign;
}

int check_unsafe_call() {
  return refuse_all(prohibits, cudaErrorStreamCaptureUnsupported);
}
int check_legacy_stream() {
  return refuse_all(is_blocking, cudaErrorStreamCaptureImplicit);
}
int ask_legacy_stream() {
  const bool any =
      std::ranges::any_of(under_way, [](const auto& capture) { return is_blocking(*capture); });
  return any ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}
int check_device_call() {
  return refuse_all([](const Capture&) { return true; }, cudaErrorStreamCaptureUnsupported);
}

int check_stream_call(const CapturePlace& stream) {
  if (stream.capture == nullptr) return check_unsafe_call();
  if (!stream.capture->valid) return cudaErrorStreamCaptureInvalidated;
  return refuse(*stream.capture, cudaErrorStreamCaptureUnsupported);
}

int check_event_call(const CapturePlace& event) {
  if (event.capture == nullptr) return check_unsafe_call();
  return refuse(*event.capture, cudaErrorCapturedEvent);
}

int open_capture(CapturePlace& stream, cudaStreamCaptureMode mode) {
  if (stream.capture != nullptr) return refuse(*stream.capture, cudaErrorIllegalState);
  const auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams = {&stream};
  stream.capture = under_way.emplace_back(capture);
  return cudaSuccess;
}

int close_capture(CapturePlace& stream, std::vector<Capture::Node>& nodes) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return cudaErrorIllegalState;
  if (capture->streams.front() != &stream) return refuse(*capture, cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed && !mine(*capture))
    return refuse(*capture, cudaErrorStreamCaptureWrongThread);
  const bool joined = all_joined(*capture);
  for (CapturePlace* const one : capture->streams)
    *one = {nullptr, {}, one->blocking};
  capture->ended = true;
  std::erase(under_way, capture);
  if (!capture->valid) return cudaErrorStreamCaptureInvalidated;
  if (!joined) return cudaErrorStreamCaptureUnjoined;
  nodes = std::move(capture->nodes);
  return cudaSuccess;
}

int add_to_capture(CapturePlace& stream, std::function<void()> work) {
  Capture& capture = *stream.capture;
  if (!capture.valid) return cudaErrorStreamCaptureInvalidated;
  count_thread(capture);
  capture.nodes.push_back({std::move(work), std::exchange(stream.last, {capture.nodes.size()})});
  return cudaSuccess;
}

int record_captured(const CapturePlace& stream, CapturePlace& event) {
  if (!stream.capture->valid) return cudaErrorStreamCaptureInvalidated;
  count_thread(*stream.capture);
  event = {stream.capture, stream.last};
  return cudaSuccess;
}

int wait_captured(CapturePlace& stream, const CapturePlace& event) {
  Capture* const inside = stream.capture.get();
  if (inside != nullptr && !inside->valid) return cudaErrorStreamCaptureInvalidated;
  const bool gone = event.capture == nullptr || event.capture->ended;
  if (gone)
    return inside == nullptr ? cudaErrorCapturedEvent
                             : refuse(*inside, cudaErrorStreamCaptureIsolation);
  Capture& capture = *event.capture;
  if (inside == nullptr && !capture.valid) return cudaErrorInvalidValue;
  if (inside != nullptr && inside != &capture) {
    refuse(capture, cudaErrorStreamCaptureMerge);
    return refuse(*inside, cudaErrorStreamCaptureMerge);
  }
  count_thread(capture);
  if (inside == nullptr) {
    stream.capture = event.capture;
    capture.streams.push_back(&stream);
  }
  for (const std::size_t node : event.last)
    if (std::ranges::find(stream.last, node) == stream.last.end()) stream.last.push_back(node);
  return cudaSuccess;
}

}  // namespace vfm::emulation
