// CUDA's runtime header for the emulation: streams and events.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime_types.h"
#include "streams.h"

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream = vfm::emulation::make_stream((flags & cudaStreamNonBlocking) == 0);
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
// Its work is done all the same.
inline cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return vfm::emulation::finish(stream);
}
inline cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return vfm::emulation::query(stream);
}

inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = vfm::emulation::make_event();
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
  return vfm::emulation::record(event, stream);
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned = 0) {
  return vfm::emulation::wait(stream, event);
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return vfm::emulation::finish(event);
}
inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  return vfm::emulation::query(event);
}
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  return vfm::emulation::milliseconds(ms, begin, end);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  vfm::emulation::destroy(event);
  return cudaSuccess;
}
