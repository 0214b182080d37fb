// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <utility>

#include "base/error.h"
#include "tensor/device.h"
#include "tensor/device_cuda.h"
#include "tensor/gpu_graph.h"

namespace vfm {
namespace {

int graphs = 0;  // that there are

void need(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw NotRecordable(vfm::format("cannot {}: {}", what, cudaGetErrorString(status)));
}

// Ends the recording however the work ends.
class Capture {
 public:
  Capture() {
    // Relaxed: the driver may take memory meanwhile, and another thread copies.
    need(cudaStreamBeginCapture(compute_stream(), cudaStreamCaptureModeRelaxed),
         "record the compute stream");
    gpu_recording() = &recording;
  }
  ~Capture() {
    if (cudaGraph_t graph = stop(); graph != nullptr) cudaGraphDestroy(graph);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cudaGraph_t stop() {
    if (std::exchange(gpu_recording(), nullptr) == nullptr) return nullptr;
    cudaGraph_t graph = nullptr;
    status = cudaStreamEndCapture(compute_stream(), &graph);
    cudaGetLastError();
    return graph;
  }

  std::lock_guard<std::mutex> lock{recording_mutex()};
  GpuRecording recording{gpu_arena(), {}};
  cudaError_t status = cudaSuccess;
};

}  // namespace

struct GpuGraph::State {
  cudaGraphExec_t executable = nullptr;
  std::vector<Tensor> constants;

  ~State() {
    if (executable == nullptr) return;
    cudaStreamSynchronize(compute_stream());
    cudaGraphExecDestroy(executable);
    --graphs;
  }
};

GpuGraph::GpuGraph(const std::function<void()>& work) : state_(std::make_unique<State>()) {
  // What is in use now is not there for the recording: memory for as much again as the allocator
  // keeps from the same work, done before.
  synchronize_gpu();
  const std::size_t kept = gpu_allocator().stats().cached;
  gpu_allocator().release();
  remember_cuda_peak();
  gpu_arena().reserve(kept);
  Capture capture;
  work();
  cudaGraph_t graph = capture.stop();
  need(capture.status, "record the compute stream");
  state_->constants = std::move(capture.recording.constants);
  const cudaError_t status = cudaGraphInstantiateWithFlags(&state_->executable, graph, 0);
  cudaGraphDestroy(graph);
  need(status, "make a graph of what was recorded");
  ++graphs;
  gpu_arena().keep();
}

GpuGraph::~GpuGraph() = default;

void GpuGraph::replay() const {
  check_gpu(cudaGraphLaunch(state_->executable, compute_stream()), "run a graph");
}

bool GpuGraph::recording() {
  return gpu_recording() != nullptr;
}

std::size_t GpuGraph::release_memory() noexcept {
  Arena& arena = gpu_arena();
  const std::size_t before = arena.size();
  cudaStreamSynchronize(compute_stream());
  remember_cuda_peak();
  // A graph writes to its regions though nothing in them is in use.
  graphs == 0 ? arena.release() : arena.release_new();
  return before - arena.size();
}

GpuRecording*& gpu_recording() {
  static thread_local GpuRecording* current = nullptr;
  return current;
}

void refuse_recording(const char* what) {
  if (gpu_recording() != nullptr)
    throw NotRecordable(vfm::format("it would have to {} within the work", what));
}

Tensor recorded_constant(const Tensor& host) {
  GpuRecording* const recording = gpu_recording();
  if (recording == nullptr) return {};
  // Not of the recording's memory, where other work would write over it; and not on the compute
  // stream, which does nothing now.
  std::shared_ptr<void> block = gpu_allocator().allocate(host.bytes());
  check_gpu(
      cudaMemcpyAsync(block.get(), host.raw(), host.bytes(), cudaMemcpyHostToDevice, copy_stream()),
      "copy to the GPU");
  check_gpu(cudaStreamSynchronize(copy_stream()), "copy to the GPU");
  recording->constants.push_back(
      Tensor::borrow(block.get(), host.shape(), host.dtype(), block, Device::cuda));
  return recording->constants.back();
}

}  // namespace vfm
