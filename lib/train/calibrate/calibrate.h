// This machine's rates, measured (vfm-train calibrate): a file for --gpu.
//
// Steps of small networks, of several widths and lengths, in f32 and bf16, are counted on
// Device::meta and timed on the CPU, kernel by kernel (kernel_times.h); ranks of one launch do so
// together, each with its threads, as they will in a training, and then send each other messages.
//
// Of a GPU probes are timed (gpu_probes.h): kernels at the sizes of large models, many calls of
// each between two waits for the GPU; the ranks' GPUs do so together, and then send each other
// messages. Thread-safety: one thread; every rank of the world calls it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "base/progress.h"
#include "dist/world.h"

namespace vfm::train {

struct CalibrateOptions {
  double seconds = 60;  ///< about so long; the smallest steps are measured in any case
  int threads = 1;      ///< of this rank
  int local_ranks = 1;  ///< on this machine, whose memory they share
  Device device = Device::cpu;
};

/// On rank 0 what models::find_gpu() reads, with "measured": {"processor", "threads", "ranks",
/// "seconds", "steps", "spread", "kernel_error", "disturbed"}: how much, as a part, steps took
/// longer than the fastest of them in the middle, and how far kernels are from what the file says
/// of them in the mean; how much longer a step's kernels take than each of them does mostly. Of a
/// GPU "gpu" and "probes" stand in place of "processor" and "threads", and "steps" are calls of
/// probes. Elsewhere null. A collective. Stopped passes.
Json calibrate(const CalibrateOptions& options, dist::World& world, Progress& progress);
/// Its part for a GPU, after World::use_device().
Json calibrate_gpu(const CalibrateOptions& options, dist::World& world, Progress& progress);
/// Whether more is to be measured: as long as the clock of rank 0 says, so that all do as much.
/// Throws Stopped on all ranks where one is to stop.
bool calibration_goes_on(dist::World& world, double left);
/// What it says of the machine, in words.
std::string calibration_words(const Json& table);

}  // namespace vfm::train
