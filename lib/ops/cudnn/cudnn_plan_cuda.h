// Graphs of tensor operations (tensor_graph.h) as cuDNN runs them, by its C API (cudnn_graph.h,
// "backend descriptors"); nothing of its C++ front end is needed.
//
// The library is opened when it is first needed, so that programs start without it.
// Errors: cuDNN's message, with what was being done. Thread-safety: one thread.
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

/// Why there is no libcudnn that we can use, or empty if there is one. The same at each call.
std::string why_no_cudnn_library();
/// "9.14.0", and 91400. Throw Error where there is none.
std::string cudnn_version();
std::size_t cudnn_version_number();

/// One of cuDNN's objects; destroyed with the last copy.
using CudnnDescriptor = std::shared_ptr<void>;

/// A graph that cuDNN has taken, without an engine for it yet: every tensor and operation is valid,
/// and so is their whole. Needs no GPU. Throws Error if one is not.
class CudnnGraph {
 public:
  explicit CudnnGraph(const graph::Graph& graph);

 private:
  friend class CudnnPlan;
  CudnnGraph(const graph::Graph& graph, void* context);
  CudnnDescriptor whole_;
};

/// A graph with an engine: the first one that builds of those that cuDNN's heuristics propose (mode
/// A, then B, then the fallback).
class CudnnPlan {
 public:
  /// For the GPU of this process. Throws Error if no engine takes the graph.
  explicit CudnnPlan(const graph::Graph& graph);
  /// For the GPU that `properties` describe (the JSON of CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR),
  /// which need not be there: to see whether an engine takes the graph, never to run it.
  CudnnPlan(const graph::Graph& graph, std::string_view properties);

  /// Bytes of scratch that run() needs.
  std::int64_t workspace() const { return workspace_; }

  /// Queues it on the compute stream. `memory` maps the graph's ids to addresses.
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
