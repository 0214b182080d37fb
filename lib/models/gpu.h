// The rates of a GPU that need not be here, or of a CPU that was measured: what a time is predicted
// from (models/kernel_time.h). models/gpu_table.h has those of known GPUs; peaks stand here, where
// runs and benchmarks read them, too. Without JSON, as the compute core has none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::models {

/// What one GPU sends to others at once, of so many bytes as it does while many messages follow
/// each other; and what each message takes besides.
struct Link {
  double bandwidth = 0;  ///< bytes/s, one way
  double latency = 0;    ///< seconds; of collectives of n ranks log2(n) times
};

/// How long a kernel of a CPU takes: `seconds`, and besides for each operation and byte that it
/// counts on Device::meta; and for each byte beyond `near`, which caches hold from kernel to
/// kernel.
struct KernelRate {
  std::string name;         ///< in the source: "gelu_forward"
  DType type = DType::f32;  ///< as KernelCall has it
  double seconds = 0, of_flop = 0, of_byte = 0;
  double near = 0, of_far_byte = 0;
  double error = 0;  ///< mean, as a part, of what it says of those it was measured from

  double of(double flops, double bytes) const {
    return seconds + flops * of_flop + bytes * of_byte + std::max(0.0, bytes - near) * of_far_byte;
  }
};

/// Returns the peak of dense bf16 products in the data sheet of a GPU, in TFLOP/s. `gpu` is a name
/// as from describe_gpu(). 0 for models that are not known here. gpu_peak_tflops() returns that of
/// this process's GPU and throws Error without a GPU.
double peak_tflops(std::string_view gpu);
double gpu_peak_tflops();

/// What a run may use of a GPU's memory: 95 % less 2 GiB for the driver and cuDNN's plans.
double usable_gpu_memory(double total, double free);

/// Rates are in FLOP/s and bytes/s. Operations of attention are those of matrices: two products
/// forward, five backward.
struct Gpu {
  std::string name, title;  ///< "h200", "H200"
  double memory = 0;        ///< bytes, as its driver tells
  double peak = 0,
         peak_f32 = 0;  ///< of the data sheet: dense bf16, which MFU is a part of; and f32
  double products = 0, products_fp8 = 0;                  ///< bf16; FP8
  double attention_forward = 0, attention_backward = 0;   ///< cuDNN's, bf16
  double own_forward = 0, own_backward = 0, own_fp8 = 0;  ///< our own kernels', bf16 and FP8
  double convolutions = 0, own_convolutions = 0;          ///< bf16: cuDNN's; our own kernels'
  double bandwidth = 0;                                   ///< of all else
  double host_link = 0;                                   ///< of copies from or to pinned memory
  double gap = 2e-6;     ///< seconds between kernels that wait for each other
  int per_node = 8;      ///< GPUs that `inside` joins
  Link inside, across;   ///< between GPUs of a node, and between nodes
  double tp_hidden = 0;  ///< part of what tp exchanges that computing hides
  /// A CPU, with some threads to a rank: the memory is that of a rank, `gap` what a kernel takes
  /// outside of it, and nothing is hidden, as the same cores compute and exchange.
  bool cpu = false;
  std::vector<KernelRate> kernels;  ///< of a CPU; of others the rates above count

  Device device() const { return cpu ? Device::cpu : Device::cuda; }

  std::string full_title() const { return (cpu ? "" : "NVIDIA ") + title; }
  /// Bytes: usable_gpu_memory() of all of it, or of a CPU four fifths.
  double usable() const;
};

}  // namespace vfm::models
