// Runs graphs of tensor operations (tensor_graph.h) with cuDNN, through its C API (cudnn_graph.h,
// "backend descriptors"); its C++ front end is not needed.
//
// The library is opened when it is first needed, so programs start without it.
// Errors have cuDNN's message and the step that failed. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ops/cudnn/tensor_graph.h"

namespace vfm::ops {

/// Returns why no usable libcudnn was found. Empty if there is one. Each call gives the same
/// answer.
std::string why_no_cudnn_library();
/// Version as text and number: "9.14.0" and 91400. Throw Error without libcudnn.
std::string cudnn_version();
std::size_t cudnn_version_number();

/// An object of cuDNN, destroyed with its last copy.
using CudnnDescriptor = std::shared_ptr<void>;

/// A graph that cuDNN has accepted as valid, without an engine yet. Needs no GPU. Throws Error if a
/// tensor, an operation or the whole graph is invalid.
class CudnnGraph {
 public:
  explicit CudnnGraph(const graph::Graph& graph);

 private:
  friend class CudnnPlan;
  CudnnGraph(const graph::Graph& graph, void* context);
  CudnnDescriptor whole_;
};

/// A graph with an engine: the first engine that builds among those that cuDNN's heuristics propose
/// (mode A, then B, then the fallback).
class CudnnPlan {
 public:
  /// Builds for the GPU of this process. Throws Error if no engine supports the graph.
  explicit CudnnPlan(const graph::Graph& graph);
  /// Builds for the GPU that `properties` describe (the JSON of
  /// CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). The GPU need not be present: the plan only tells whether
  /// an engine supports the graph, and must not run.
  CudnnPlan(const graph::Graph& graph, std::string_view properties);

  /// Bytes of scratch that run() needs.
  std::int64_t workspace() const { return workspace_; }

  /// Queues the graph on the compute stream. `memory` maps the graph's ids to addresses.
  using Memory = std::map<std::int64_t, void*>;
  void run(const Memory& memory, void* workspace) const;

 private:
  void choose(const CudnnDescriptor& device);
  bool build(const CudnnDescriptor& configuration, const CudnnDescriptor& device, std::string& why);

  CudnnGraph graph_;
  CudnnDescriptor configuration_, plan_;
  std::deque<std::pair<std::int64_t, float>> numbers_;
  std::int64_t workspace_ = 0;
};

}  // namespace vfm::ops
