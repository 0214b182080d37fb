// Prompts dealt to GPUs: each clip is made by a worker (workers/worker.h) that has the whole model
// on its GPU, and writes the clip's files itself, as a rank of mpirun would.
//
// This program reads the prompts, names the clips in their order, and writes manifest, errors and
// report; it has no model. A worker interprets each prompt. If a worker is lost during a clip,
// another continues from its unfinished work.
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

/// The service of such a worker, with the same job as its program. `threads`: its OpenMP threads on
/// the processor; 0: as many as there are.
inline constexpr const char* kClips = "clips";
std::unique_ptr<workers::Service> open_clips(const GenerateJob& job, int threads);

/// generate_clips() by the workers of `models`, whose service of `number` is kClips: the same
/// clips, records and errors. Needs a folder as output, and no --parallel. Makes as many clips at
/// once as there are GPUs. Thread-safety: one thread.
long deal_clips(const GenerateJob& job, workers::StageModels& models, std::size_t number,
                share::Slots& slots, Progress& progress, io::ManifestWriter& manifest);

}  // namespace vfm::generate
