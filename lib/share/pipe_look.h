// Describes a pipe in lines of text for a terminal: the work of each program, and the bottleneck.
//
// A look is the work between two readings of the shared board (share/pipe_board.h).
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "share/gpu_look.h"
#include "share/gpu_states.h"
#include "share/pipe_board.h"

namespace vfm::share {

/// The work of one program between two readings.
struct StageLook {
  StageState state;                  ///< State at the second reading.
  double rate = 0;                   ///< Finished units of work per second.
  double slots = 0;                  ///< Mean number of slots that the program had.
  double waiting = 0;                ///< Mean number of threads that waited for a slot.
  double input = 0;                  ///< Share of the time spent waiting for input, 0 to 1.
  double output = 0;                 ///< Share of the time spent waiting for the reader, 0 to 1.
  std::vector<GpuLook> gpus = {};    ///< Use of GPUs, for each GpuKind.
};

struct PipeLook {
  int slots = 0;  ///< Number of shared slots, or PipeBoard::kNone if make gives the slots.
  int gpus = 0;
  double seconds = 0;
  std::vector<StageLook> stages;  ///< Programs in the order of the pipe.
  std::string held_up;            ///< Bottleneck of the whole run, or empty if not known.
};

/// Returns the work between the readings `before` and `after`, which are `seconds` apart. If a
/// program joined after `before`, the result includes all its work.
PipeLook look_between(const std::vector<StageState>& before, const std::vector<StageState>& after,
                      double seconds, int slots);
void add_gpus(PipeLook& look, const GpuStates& before, const GpuStates& after);

/// The program that slows the whole pipe down. `stage` is an index into PipeLook::stages, or -1 if
/// there is no such program.
struct Bottleneck {
  int stage = -1;
  std::string why;  ///< Reason: "has 11.8 of the 16 slots", "has 5.9 GPUs, and items wait for
                    ///< more".
};
/// The first of these rules that applies decides:
/// 1. A stopped program is the bottleneck.
/// 2. A program is short of GPUs if its items wait for GPUs most of the time, and if all GPUs with
/// its model (or all GPUs of the pipe) are busy. Of such programs, the one with the most GPUs is
/// the bottleneck.
/// 3. The program with the most slots is the bottleneck if all slots are in use, or if this program
/// has all slots that its -j allows.
/// 4. Otherwise the bottleneck is the program that waits least for input and for its reader. If a
/// program waits for its reader while the reader waits for input, the program itself writes slowly,
/// so this wait is ignored. If all programs wait most of the time, the input is too slow, and no
/// program is the bottleneck.
Bottleneck find_bottleneck(const PipeLook& look);

/// Returns the name of each program: "vfm-clip", or "vfm-clip (2)" if a program before it in
/// `stages` has the same name.
std::vector<std::string> distinct_names(const std::vector<StageState>& stages);

/// Returns one line for each program, and one line that names the bottleneck. A line has at most
/// `width` characters.
std::vector<std::string> pipe_lines(const PipeLook& look, int width);

}  // namespace vfm::share
