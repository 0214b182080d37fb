// Deals prompts to GPUs. Each clip is made by a worker (workers/worker.h) that has the whole model
// on its GPU, and writes the clip's files itself, as a rank of mpirun would.
//
// This program reads the prompts, names the clips in their order, and writes manifest, errors and
// report. It has no model. A worker parses each prompt. If a worker is lost during a clip, another
// continues from its unfinished work.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/progress.h"
#include "generate/generate.h"
#include "io/manifest.h"
#include "share/slots.h"
#include "workers/service.h"
#include "workers/stage_models.h"

namespace vfm::generate {

/// Makes the service of such a worker, for the same job as its program. `threads` is the number of
/// OpenMP threads; 0: the number of processors.
inline constexpr const char* kClips = "clips";
std::unique_ptr<workers::Service> open_clips(const GenerateJob& job, int threads);

/// generate_clips() with the workers of `models`, whose service number `number` is kClips. It gives
/// the same clips, records and errors. Needs a folder as output, and no --parallel. Makes one clip
/// per GPU at a time. Thread-safety: one thread.
long deal_clips(const GenerateJob& job, workers::StageModels& models, std::size_t number,
                share::Slots& slots, Progress& progress, io::ManifestWriter& manifest);

}  // namespace vfm::generate
