// CUDA's runtime header for the emulation: captures and graphs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime_types.h"
#include "streams.h"

inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return vfm::emulation::begin_capture(stream, mode);
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return vfm::emulation::end_capture(stream, graph);
}
inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return vfm::emulation::is_capturing(stream, status);
}
inline cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  vfm::emulation::exchange_mode(mode);
  return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph,
                                                 unsigned long long) {
  *made = vfm::emulation::copy(graph);
  return cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return vfm::emulation::launch(graph, stream);
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  vfm::emulation::destroy(graph);
  return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return cudaGraphDestroy(graph);
}
