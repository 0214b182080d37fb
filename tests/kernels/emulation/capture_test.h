// What the tests of the emulation's rules of stream capture share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <future>
#include <string>

#include "cuda_runtime.h"

namespace vfm::test {

inline constexpr cudaStreamCaptureMode kGlobal = cudaStreamCaptureModeGlobal,
                                       kLocal = cudaStreamCaptureModeThreadLocal,
                                       kRelaxed = cudaStreamCaptureModeRelaxed;

inline cudaStream_t make_stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  return stream;
}

struct Event {
  Event() { cudaEventCreate(&event); }
  ~Event() { cudaEventDestroy(event); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event; }  // NOLINT: as CUDA's
  cudaEvent_t event = nullptr;
};

/// What f() gives in a thread of its own.
template <class F>
int elsewhere(F f) {
  return std::async(std::launch::async, f).get();
}

inline void begin(cudaStream_t stream, cudaStreamCaptureMode mode = kRelaxed) {
  REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
}

/// Of the capture; that there is a graph only without an error is checked.
inline int end(cudaStream_t stream) {
  auto* graph = reinterpret_cast<cudaGraph_t>(stream);  // anything
  const int status = cudaStreamEndCapture(stream, &graph);
  CHECK((graph != nullptr) == (status == cudaSuccess));
  if (graph != nullptr) cudaGraphDestroy(graph);
  return status;
}

inline void launch(cudaGraph_t graph, cudaStream_t stream) {
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaGraphInstantiateWithFlags(&executable, graph, 0) == cudaSuccess);
  CHECK(cudaGraphLaunch(executable, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

inline cudaStreamCaptureStatus status_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  CHECK(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
  return status;
}

inline char byte = 0;  ///< of the device, as the emulation has it
inline int work(cudaStream_t stream, int value = 1) {
  return cudaMemsetAsync(&byte, value, 1, stream);
}

struct Call {
  std::string name;
  std::function<int()> call;
};

}  // namespace vfm::test
