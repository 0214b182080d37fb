// CUDA's streams, events and graphs for the emulation.
//
// A stream's work is done when it is queued. Where a test says so, that of some streams is put off
// until somebody waits for it: then an event that is missing shows, whichever stream is late in
// earnest. Thread-safety: any thread; work is done by one at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;

namespace vfm::emulation {

/// Whose work is put off: nobody's; of streams that never ran a kernel; of those that did.
enum class Late { none, copies, kernels };
/// What was put off before is done now.
void set_late(Late late);

/// Queues work on a stream, or records it. The null stream's is done at once.
void submit(CUstream_st* stream, std::function<void()> work, bool kernel = false);

CUstream_st* make_stream();
/// Does all work of the stream, or of all streams. False for a stream that records.
bool finish(CUstream_st* stream);
void finish_all();

CUevent_st* make_event();
void destroy(CUevent_st* event);
/// False for a stream that records: nobody here uses events in graphs.
bool record(CUevent_st* event, CUstream_st* stream);
bool wait(CUstream_st* stream, CUevent_st* event);
/// Does the work that the event stands behind.
void finish(CUevent_st* event);
/// Between two events that were reached.
float milliseconds(CUevent_st* begin, CUevent_st* end);

bool begin_capture(CUstream_st* stream);
/// Null if the stream did not record, or was asked for what a recording cannot do.
CUgraph_st* end_capture(CUstream_st* stream);
CUgraph_st* copy(CUgraph_st* graph);
void destroy(CUgraph_st* graph);
void launch(CUgraph_st* graph, CUstream_st* stream);

/// Gives memory (memory.h) back, when all work is done.
void free(void* pointer);

}  // namespace vfm::emulation
