// This machine's rates, measured (vfm-train --calibrate): a file for --gpu.
//
// Steps of small networks, of several widths and lengths, in f32 and bf16, are counted on
// Device::meta and timed on the CPU, kernel by kernel (kernel_times.h); ranks of one launch do so
// together, each with its threads, as they will in a training, and then send each other messages.
// Thread-safety: one thread; every rank of the world calls it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json.h"
#include "base/progress.h"
#include "dist/world.h"

namespace vfm::train {

struct CalibrateOptions {
  double seconds = 60;  ///< about so long; the smallest steps are measured in any case
  int threads = 1;      ///< of this rank
  int local_ranks = 1;  ///< on this machine, whose memory they share
};

/// On rank 0 what models::find_gpu() reads, with "measured": {"processor", "threads", "ranks",
/// "seconds", "steps", "spread", "kernel_error"}: how much, as a part, steps took longer than the
/// fastest of them in the middle, and how far kernels are from what the file says of them in the
/// mean. Elsewhere null. A collective. Stopped passes.
Json calibrate(const CalibrateOptions& options, dist::World& world, Progress& progress);
/// What it says of the machine, in words.
std::string calibration_words(const Json& table);

}  // namespace vfm::train
