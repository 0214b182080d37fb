// This machine's rates, measured (vfm-train calibrate): a file for --gpu.
//
// On the CPU, steps of small networks of several widths and lengths, in f32 and bf16, are counted
// on Device::meta and timed kernel by kernel (kernel_times.h). The ranks of one launch do so
// together, each with its threads, as in a training; then they time messages between them.
//
// On a GPU, probes are timed (gpu_probes.h): kernels at the sizes of large models, with many calls
// of each between two waits for the GPU. The ranks' GPUs do so together; then they time messages
// between them. Thread-safety: one thread; every rank of the world calls it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "base/progress.h"
#include "dist/world.h"

namespace vfm::train {

struct CalibrateOptions {
  double seconds = 60;  ///< approximate duration; the smallest steps are measured in any case
  int threads = 1;      ///< threads of this rank
  int local_ranks = 1;  ///< ranks on this machine, which share its memory
  Device device = Device::cpu;
};

/// Measures the rates. Returns on rank 0 a table for models::find_gpu(), elsewhere null. In the
/// table "measured" has "processor", "threads", "ranks", "seconds", "steps" and the numbers below.
/// For a GPU "gpu" and "probes" replace "processor" and "threads". The "steps" of a GPU are calls
/// of probes.
///   "spread"        relative difference between the median step and the fastest step
///   "kernel_error"  mean relative error of the table's times of kernels
///   "disturbed"     time of a step's kernels / sum of their usual times
/// Passes on Stopped. A collective.
Json calibrate(const CalibrateOptions& options, dist::World& world, Progress& progress);
/// The part of calibrate() for a GPU, after World::use_device().
Json calibrate_gpu(const CalibrateOptions& options, dist::World& world, Progress& progress);
/// Returns whether to measure more: `left` > 0 on rank 0, so that all ranks do the same. Throws
/// Stopped on all ranks if one of them is to stop.
bool calibration_goes_on(dist::World& world, double left);
/// The table in words.
std::string calibration_words(const Json& table);

}  // namespace vfm::train
