// CUDA's streams, events and graphs for the emulation.
//
// A stream's work is done when it is queued. Where a test says so, that of some streams is put off
// until somebody waits for it: then an event that is missing shows, whichever stream is late in
// earnest. What a capture forbids (capture.h) is refused, with CUDA's errors: int is a status.
// The null stream is CUDA's legacy one. Thread-safety: any thread; work is done by one at a time.
//
// Threads may stand for processes, each with a GPU: set_device() of each. A stream or event that
// they all know by one handle, as the library has one compute stream, is then another for each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "monitor.h"
#include "runtime_types.h"

namespace vfm::emulation {

/// Whose work is put off: nobody's; of streams that never ran a kernel; of those that did; of those
/// that work with other devices.
enum class Late { none, copies, kernels, meetings };
/// What was put off before is done now.
void set_late(Late late);
/// From now on, or no longer, as if no stream waited for an event: what a test plants, to see that
/// one that is missing shows.
void forget_waits(bool forget);

/// Queues work on a stream, or records it. The null stream's is done at once.
[[nodiscard]] int submit(CUstream_st* stream, std::function<void()> work, bool kernel = false);
/// Queues work that may have to wait for other devices: it is called again until it returns true,
/// and the stream stands still meanwhile. Returns its place in the stream.
[[nodiscard]] std::uint64_t submit_meeting(CUstream_st* stream, std::function<bool()> work);
/// How much was queued on it, ever.
std::uint64_t end_of(CUstream_st* stream);
/// Does the stream's work up to a place, as far as it can be done now. Whether it is done.
bool advance(CUstream_st* stream, std::uint64_t place);
/// The stream of this device that a handle stands for.
CUstream_st* own_stream(CUstream_st* stream);
/// Held by all that concerns streams; a change is one for work that waits for other devices.
Monitor& monitor();

/// Of the calling thread; 0 at first.
int& device();

/// Work of the null stream, for which the host waits.
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
