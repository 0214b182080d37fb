// CUDA's streams, events and graphs for the emulation.
//
// A stream's work is done when it is queued. Where a test says so, that of some streams is put off
// until somebody waits for it: then an event that is missing shows, whichever stream is late in
// earnest. What a capture forbids (capture.h) is refused, with CUDA's errors: int is a status.
// The null stream is CUDA's legacy one. Thread-safety: any thread; work is done by one at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "runtime_types.h"

namespace vfm::emulation {

/// Whose work is put off: nobody's; of streams that never ran a kernel; of those that did.
enum class Late { none, copies, kernels };
/// What was put off before is done now.
void set_late(Late late);

/// Queues work on a stream, or records it. The null stream's is done at once.
[[nodiscard]] int submit(CUstream_st* stream, std::function<void()> work, bool kernel = false);
/// The same on the null stream, for which the host waits.
int do_now(const std::function<void()>& work);

/// A `blocking` stream and the null stream wait for each other.
CUstream_st* make_stream(bool blocking);
/// Does all work of the stream, or of all streams.
int finish(CUstream_st* stream);
int finish_all();
/// cudaErrorNotReady while there is work that was put off.
int query(CUstream_st* stream);

CUevent_st* make_event();
void destroy(CUevent_st* event);
int record(CUevent_st* event, CUstream_st* stream);
int wait(CUstream_st* stream, CUevent_st* event);
/// Does the work that the event stands behind.
int finish(CUevent_st* event);
int query(CUevent_st* event);
/// Between two events that were reached.
int milliseconds(float* ms, CUevent_st* begin, CUevent_st* end);

int begin_capture(CUstream_st* stream, cudaStreamCaptureMode mode);
/// The graph is null with an error.
int end_capture(CUstream_st* stream, CUgraph_st** graph);
int is_capturing(CUstream_st* stream, cudaStreamCaptureStatus* status);
/// Of the calling thread.
void exchange_mode(cudaStreamCaptureMode* mode);
/// What a test wants to be done at the beginning of each capture, by the thread that begins it.
void when_capture_begins(std::function<void()> call);
/// How often something came into a capture from a thread that had not begun it.
std::size_t recorded_by_others();

CUgraph_st* copy(CUgraph_st* graph);
void destroy(CUgraph_st* graph);
int launch(CUgraph_st* graph, CUstream_st* stream);

/// Before what may be unsafe beside a capture: an error if this thread must not do it now.
int unsafe_call();
/// Gives memory (memory.h) back, when all work is done.
int free(void* pointer);

}  // namespace vfm::emulation
