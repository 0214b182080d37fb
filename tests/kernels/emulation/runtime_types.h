// CUDA's handles, flags and error codes, as far as they are used, for the emulation: names and
// numbers are those of driver_types.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = CUgraph_st*;

using cudaError_t = int;
enum : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100,
  cudaErrorIllegalState = 401,
  cudaErrorNotReady = 600,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureMerge = 902,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorStreamCaptureImplicit = 906,
  cudaErrorCapturedEvent = 907,
  cudaErrorStreamCaptureWrongThread = 908,
};

enum : unsigned {
  cudaStreamDefault = 0,
  cudaStreamNonBlocking = 1,
  cudaEventBlockingSync = 1,
  cudaEventDisableTiming = 2
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone,
  cudaStreamCaptureStatusActive,
  cudaStreamCaptureStatusInvalidated
};

inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalState:
      return "illegal state";
    case cudaErrorNotReady:
      return "not ready";
    case cudaErrorStreamCaptureUnsupported:
      return "not permitted while a stream captures";
    case cudaErrorStreamCaptureInvalidated:
      return "the capture is invalid by an error before";
    case cudaErrorStreamCaptureMerge:
      return "two captures would become one";
    case cudaErrorStreamCaptureUnmatched:
      return "the capture began in another stream";
    case cudaErrorStreamCaptureUnjoined:
      return "a stream was not joined to its capture";
    case cudaErrorStreamCaptureIsolation:
      return "a capture would wait for what is outside of it";
    case cudaErrorStreamCaptureImplicit:
      return "the legacy stream would wait for a capture";
    case cudaErrorCapturedEvent:
      return "the event is part of a capture";
    case cudaErrorStreamCaptureWrongThread:
      return "another thread began the capture";
    default:
      return "invalid value";
  }
}
