// CUDA's rules of stream capture, for the emulation: what may be asked while a stream captures, by
// whom, and what becomes of a capture that was asked for more. Of streams.cc, under its lock.
//
// The sources, and what here is of which:
// - cuda_runtime_api.h of CUDA 13.0 at cudaThreadExchangeStreamCaptureMode: the three modes, of
//   captures and of threads, cudaMalloc as an unsafe call; at cudaStreamBeginCapture and
//   cudaStreamEndCapture: where and by which thread a capture ends; at cudaStreamIsCapturing: the
//   legacy stream while a blocking stream captures. driver_types.h: what each error means.
// - CUDA C++ Programming Guide, "Creating a Graph Using Stream Capture": events that are captured
//   draw streams into a capture, and all must be joined; nobody asks for the state of a captured
//   stream or event, nor of the device; synchronous copies use the legacy stream; an event from
//   outside is not waited for; captures do not merge; what is not valid invalidates.
// - Neither lists the unsafe calls. Here: memory that is taken and freed, of the device and pinned;
//   synchronous copies; and whatever waits for or asks about the GPU: cudaEventQuery is known as
//   one (PyTorch's issues of NCCL's watchdog, pull request 104555), the others go by it.
// - Where no error is named, one is chosen: cudaErrorIllegalState for a capture that begins or ends
//   where it cannot, cudaErrorCapturedEvent for an event of a capture that has ended,
//   cudaErrorStreamCaptureUnsupported for the legacy stream as part of a capture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime_types.h"

namespace vfm::emulation {

struct CapturePlace;

/// From one cudaStreamBeginCapture to its end.
struct Capture {
  struct Node {
    std::function<void()> work;
    std::vector<std::size_t> after;  ///< nodes
  };

  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;  ///< that began it
  bool valid = true, ended = false;
  std::vector<Node> nodes;             ///< each is behind those that it waits for
  std::vector<CapturePlace*> streams;  ///< the one where it began is first
};

/// What a stream, or an event, has of a capture.
struct CapturePlace {
  std::shared_ptr<Capture> capture;  ///< null: nothing
  std::vector<std::size_t> last;     ///< the nodes that what comes next waits for
  bool blocking = false;             ///< of a stream that the legacy stream waits for
};

// All return a status. Those that end with an error have invalidated the captures concerned.

/// Before a call that may be unsafe while something is captured.
int check_unsafe_call();
/// Before a use of the legacy stream; and the same without harm, for who asks whether it captures.
int check_legacy_stream();
int ask_legacy_stream();
/// Before a call that concerns all streams.
int check_device_call();
/// Before a call that waits for a stream or an event, or asks whether it is done.
int check_stream_call(const CapturePlace& stream);
int check_event_call(const CapturePlace& event);

int open_capture(CapturePlace& stream, cudaStreamCaptureMode mode);
/// Hands out what was captured, in an order in which it may be done. The streams capture no more,
/// with an error too; but if it is the wrong stream or thread, they do.
int close_capture(CapturePlace& stream, std::vector<Capture::Node>& nodes);
/// Adds work to the capture of a stream that is in one.
int add_to_capture(CapturePlace& stream, std::function<void()> work);
/// What the stream captured until now becomes the event's.
int record_captured(const CapturePlace& stream, CapturePlace& event);
/// For a stream that captures, or an event that was captured: the stream joins the event's capture,
/// or waits in it.
int wait_captured(CapturePlace& stream, const CapturePlace& event);

/// The calling thread's.
cudaStreamCaptureMode& thread_mode();
/// How often something came into a capture from a thread that had not begun it: CUDA takes that
/// without a word.
std::size_t from_other_threads();

}  // namespace vfm::emulation
