// An account of the work and memory of ops, taken on a device that computes nothing.
//
// Tensors on Device::meta have a shape, a type and unique addresses, but no memory. Reading one is
// a fault of the program; copying one to another device throws Error. Ops check shapes, make their
// results there and note what their kernels would do (ops/run.h). While a MetaAccount exists, it
// counts what its thread does on Device::meta. It allocates as the device that it stands for would,
// with a CachingAllocator (tensor/caching_allocator.h) whose blocks are addresses only.
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

/// The limit of a kernel's time: arithmetic for products, convolutions and attention; memory
/// bandwidth for elementwise; the link between host and GPU for transfers, which the GPU waits for.
enum class WorkKind { products, convolutions, attention, elementwise, transfers };
std::string_view work_kind_name(WorkKind kind);  ///< "products", ...

/// The work of a kernel. A multiply-add is two operations. Matrix products, convolutions and
/// attention count; norms and activations do not, as their time is that of the memory.
struct Work {
  double flops = 0;
  double bytes = 0;         ///< of the tensors that it reads and writes, each once
  std::size_t scratch = 0;  ///< bytes of temporary memory during the kernel
  /// Estimated bytes of the host's memory that a library keeps for each distinct `kernel`.
  double kept = 0;
  std::size_t workspace = 0;  ///< device bytes a library keeps from its first kernel on
  std::string kernel;
  WorkKind kind = WorkKind::elementwise;
  DType type = DType::f32;  ///< of the operands
  bool cudnn = false;       ///< attention, convolutions: run by cuDNN, not by our own kernels
};

/// The sums over all calls of one kernel.
struct KernelWork {
  WorkKind kind = WorkKind::elementwise;
  double calls = 0, flops = 0, bytes = 0;
};

/// One call of a kernel: the fields on which its time depends. Fields as in Work.
struct KernelCall {
  WorkKind kind = WorkKind::elementwise;
  DType type = DType::f32;
  std::string name;
  bool cudnn = false;
  double flops = 0, bytes = 0;
  auto operator<=>(const KernelCall&) const = default;
};
/// The number of calls of each kind. A mean over several runs may be fractional.
using KernelCalls = std::map<KernelCall, double>;
/// Adds `times` times `more`.
void add_calls(KernelCalls& sum, const KernelCalls& more, double times = 1);
/// Sums the calls of each kernel by name.
std::map<std::string, KernelWork> work_by_name(const KernelCalls& calls);

/// A copy that runs in parallel with kernels (tensor/offload.h), and the kernels until the wait for
/// it.
struct CopyBeside {
  double bytes = 0;
  KernelCalls meanwhile;
  double times = 1;  ///< number of such copies; fractional if it is a mean
};

class MetaAccount {
 public:
  /// Counts what this thread does on Device::meta from now on, as if it were `device`: cpu or cuda.
  /// Takes the place of an older account until it is destroyed.
  explicit MetaAccount(Device device);
  ~MetaAccount();
  MetaAccount(const MetaAccount&) = delete;
  MetaAccount& operator=(const MetaAccount&) = delete;

  /// Blocks that are handed out. The scratch of a kernel counts while the kernel runs.
  MemoryStats memory() const;
  /// Blocks of the host's pinned memory; only on Device::cuda.
  MemoryStats pinned() const;
  /// Copies in the order in which they begin; never two at once.
  const std::vector<CopyBeside>& copies() const;
  /// The sums over all kernels since the account was made. Exceptions: `scratch` is the largest of
  /// any kernel, `kept` counts each distinct kernel once.
  const Work& work() const;
  /// All calls of kernels, by their names in the source ("activation_forward"). Copies and
  /// conversions are kernels too.
  const KernelCalls& calls() const;
  std::map<std::string, KernelWork> kernels() const { return work_by_name(calls()); }

  struct State;

 private:
  std::shared_ptr<State> state_, outer_;
};

/// Counts the work of a kernel on Device::meta.
void note_work(const char* name, const Work& work);

/// Returns whether `what` is done for the first time in this thread's account, for work that is
/// done only once; true without an account.
bool first_on_meta(const std::string& what);

/// Returns the device whose sizes and layout apply: `device` itself, or for Device::meta the device
/// that the account stands for; the CPU without an account.
Device layout_device(Device device);

/// For tensor.cc: returns `bytes` addresses that nothing else has.
std::shared_ptr<void> allocate_meta(std::size_t bytes);

/// For offload.cc: allocates addresses in pinned memory; starts a copy and returns its number; ends
/// the copy of that number.
std::shared_ptr<void> allocate_meta_pinned(std::size_t bytes);
std::size_t begin_copy_on_meta(double bytes);
void end_copy_on_meta(std::size_t number);

}  // namespace vfm
