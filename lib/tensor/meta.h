// What work on tensors costs, found by doing it on a device that computes nothing.
//
// Tensors on Device::meta have shape, type and a place of their own, and no memory: reading them is
// a fault of the program, and copying them to another device an Error. Ops check shapes, make their
// results there and note what their kernels would do (ops/run.h). While there is a MetaAccount, all
// that its thread does there is counted, by the allocator of the device that it stands for
// (tensor/caching_allocator.h), which has nothing to hand out but addresses.
// Thread-safety: an account belongs to the thread that made it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace vfm {

/// What takes a kernel's time: arithmetic; of elementwise ones the memory; of transfers what lies
/// between the host and a GPU, which waits for them.
enum class WorkKind { products, convolutions, attention, elementwise, transfers };
std::string_view work_kind_name(WorkKind kind);  ///< "products", ...

/// What a kernel does. A multiply-add is two operations; counted are matrix products, convolutions
/// and attention, not norms and activations, which take the memory's time and not that of
/// arithmetic.
struct Work {
  double flops = 0;
  double bytes = 0;         ///< of the tensors that it reads and writes, each once
  std::size_t scratch = 0;  ///< bytes that it has for itself meanwhile
  /// What a library keeps of the host's memory for each `kernel` that it has met: bytes, estimated.
  double kept = 0;
  std::size_t workspace = 0;  ///< bytes of the device that a library keeps from its first kernel on
  std::string kernel;
  WorkKind kind = WorkKind::elementwise;
  DType type = DType::f32;  ///< of what is multiplied
  bool cudnn = false;       ///< attention, convolutions: cuDNN would do it, not our own kernels
};

/// What all kernels of one name did.
struct KernelWork {
  WorkKind kind = WorkKind::elementwise;
  double calls = 0, flops = 0, bytes = 0;
};

/// One call of a kernel, as far as its time depends on it; fields as in Work.
struct KernelCall {
  WorkKind kind = WorkKind::elementwise;
  DType type = DType::f32;
  std::string name;
  bool cudnn = false;
  double flops = 0, bytes = 0;
  auto operator<=>(const KernelCall&) const = default;
};
/// And how many of them are alike; not whole where they are means.
using KernelCalls = std::map<KernelCall, double>;
/// Adds `times` times `more`.
void add_calls(KernelCalls& sum, const KernelCalls& more, double times = 1);
/// The sums of each kernel, by its name.
std::map<std::string, KernelWork> work_by_name(const KernelCalls& calls);

/// A copy beside what is computed (tensor/offload.h), and what is computed until it is waited for.
struct CopyBeside {
  double bytes = 0;
  KernelCalls meanwhile;
  double times = 1;  ///< how often; where it is a mean
};

class MetaAccount {
 public:
  /// From now on counts what this thread does on Device::meta, as if it were `device`: cpu or cuda.
  /// Takes the place of an account that is there, until it is gone itself.
  explicit MetaAccount(Device device);
  ~MetaAccount();
  MetaAccount(const MetaAccount&) = delete;
  MetaAccount& operator=(const MetaAccount&) = delete;

  /// Of blocks that are handed out; the scratch of a kernel counts while it lasts.
  MemoryStats memory() const;
  /// The same of the host's pinned memory; of Device::cuda.
  MemoryStats pinned() const;
  /// In the order in which they begin; never two at once.
  const std::vector<CopyBeside>& copies() const;
  /// Of all kernels since it was made: sums; scratch is the largest; kept of each kernel once.
  const Work& work() const;
  /// All calls of kernels, by their names in the source ("gelu_forward"); copies and conversions
  /// are kernels too.
  const KernelCalls& calls() const;
  std::map<std::string, KernelWork> kernels() const { return work_by_name(calls()); }

  struct State;

 private:
  std::shared_ptr<State> state_, outer_;
};

/// Counts the work of a kernel on Device::meta.
void note_work(const char* name, const Work& work);

/// Whether this is the first time that `what` is done: of an account, for what is done only once.
bool first_on_meta(const std::string& what);

/// `device`, or of Device::meta the one that the account stands for, without an account the CPU:
/// for what differs between devices in sizes and layout.
Device layout_device(Device device);

/// For tensor.cc: a place of `bytes` bytes that nothing else has.
std::shared_ptr<void> allocate_meta(std::size_t bytes);

/// For offload.cc: such a place in pinned memory; and the begin of a copy, which gives its number,
/// and its end.
std::shared_ptr<void> allocate_meta_pinned(std::size_t bytes);
std::size_t begin_copy_on_meta(double bytes);
void end_copy_on_meta(std::size_t number);

}  // namespace vfm
