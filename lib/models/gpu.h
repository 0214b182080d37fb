// The rates from which times are predicted (models/kernel_time.h): those of a GPU, which this
// machine need not have, or of a CPU that was measured. models/gpu_table.h has the rates of known
// GPUs. This header also has peaks, which runs and benchmarks read. It needs no JSON, because the
// compute core has none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::models {

/// The link over which one GPU sends to others: its rate while many messages follow each other, and
/// the time that each message takes in addition.
struct Link {
  double bandwidth = 0;  ///< bytes/s, one way
  double latency = 0;    ///< seconds; a collective of n ranks takes log2(n) times as long
};

/// The time of a kernel on a CPU. Each call takes `seconds`; each operation and byte that the
/// kernel counts on Device::meta takes `of_flop` and `of_byte`. Each byte beyond `near`, which is
/// what caches hold from kernel to kernel, takes `of_far_byte` in addition.
struct KernelRate {
  std::string name;         ///< in the source: "activation_forward"
  DType type = DType::f32;  ///< as in KernelCall
  double seconds = 0, of_flop = 0, of_byte = 0;
  double near = 0, of_far_byte = 0;
  double error = 0;  ///< mean relative error for the kernels that it was measured with

  double of(double flops, double bytes) const {
    return seconds + flops * of_flop + bytes * of_byte + std::max(0.0, bytes - near) * of_far_byte;
  }
};

/// Returns the peak of dense bf16 products in the data sheet of a GPU, in TFLOP/s. `gpu` is a name
/// as from describe_gpu(). Returns 0 for unknown GPUs. gpu_peak_tflops() returns the peak of this
/// process's GPU and throws Error without a GPU.
double peak_tflops(std::string_view gpu);
double gpu_peak_tflops();

/// Returns the bytes of a GPU's memory that a run may use: 95 % of `total`, or `free` if that is
/// less, minus 2 GiB for the driver and cuDNN's plans.
double usable_gpu_memory(double total, double free);

/// Rates are in FLOP/s and bytes/s. The operations of attention are those of its matrix products:
/// two forward, five backward.
struct Gpu {
  std::string name, title;  ///< "h200", "H200"
  double memory = 0;        ///< bytes, as the driver reports
  double peak = 0,
         peak_f32 = 0;  ///< from the data sheet: dense bf16, the base of MFU; and f32
  double products = 0, products_fp8 = 0;                  ///< bf16; FP8
  double attention_forward = 0, attention_backward = 0;   ///< cuDNN's, bf16
  double attention_fp8 = 0;                               ///< cuDNN's, forward
  double own_forward = 0, own_backward = 0;               ///< our own kernels', bf16
  double convolutions = 0, own_convolutions = 0;          ///< bf16: cuDNN's; our own kernels'
  double bandwidth = 0;                                   ///< of memory, for all other kernels
  double host_link = 0;                                   ///< of copies from and to pinned memory
  double gap = 2e-6;     ///< seconds between kernels that wait for each other
  int per_node = 8;      ///< GPUs of a node, which `inside` connects
  Link inside, across;   ///< between GPUs of a node, and between nodes
  double tp_hidden = 0;  ///< share of tp's exchange that computation hides
  /// True for a CPU, where each rank has some threads. Then `memory` is that of a rank, and `gap`
  /// is the time that a kernel call takes outside the kernel. Exchange is never hidden, because the
  /// same cores compute and exchange.
  bool cpu = false;
  std::vector<KernelRate> kernels;  ///< for a CPU; a GPU uses the rates above

  Device device() const { return cpu ? Device::cpu : Device::cuda; }

  std::string full_title() const { return (cpu ? "" : "NVIDIA ") + title; }
  /// Returns the bytes that a run may use: usable_gpu_memory() if all memory is free; for a CPU,
  /// four fifths of the memory.
  double usable() const;
};

}  // namespace vfm::models
