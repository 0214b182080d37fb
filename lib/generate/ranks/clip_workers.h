// Deals prompts to workers. Each clip is made by a worker (workers/worker.h) that has the whole
// model on its GPU, and writes the clip's files itself, as a rank of mpirun would.
//
// This program has no model. A worker is sent a prompt and returns the request, which any worker
// makes into a clip. If a worker is lost during a clip, another continues from its unfinished work.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/progress.h"
#include "generate/clip_makers.h"
#include "generate/generate.h"
#include "io/manifest.h"
#include "workers/service.h"
#include "workers/stage_models.h"

namespace vfm::generate {

/// Makes the service of such a worker, for the same job as its program. `threads` is the number of
/// OpenMP threads; 0: the number of processors.
inline constexpr const char* kClips = "clips";
std::unique_ptr<workers::Service> open_clips(const GenerateJob& job, int threads);

/// The workers of `models`, whose service number `number` is kClips. They give the clips, records
/// and errors of ClipMaker. For a folder as output, and no --parallel. Thread-safety: as
/// ClipMakers, and ask() may run while clips are made.
class ClipWorkers final : public ClipMakers {
 public:
  /// `models` must outlive this object.
  ClipWorkers(const GenerateJob& job, workers::StageModels& models, std::size_t number,
              Progress& progress, io::ManifestWriter& manifest);

  bool begin_part(const std::string& temporary) override {
    temporary_ = temporary;
    return !temporary.empty();
  }
  ClipFolder& output() override { return output_; }
  const ModelInUse& in_use() const override { return in_use_; }
  Asked ask(Prompt prompt) override;
  std::optional<double> output_error() const override { return output_error_; }
  Result make(Asked& asked) override;
  void report(const std::string& incomplete) override;
  void finished() override { models_.finished(); }

 private:
  std::string tell(const char* what, const std::string& message);

  workers::StageModels& models_;
  std::size_t number_;
  std::string temporary_;  ///< folder for temporary files of a part; empty: no parts
  ClipFolder output_;
  ModelInUse in_use_;  ///< what the workers say of it
  std::optional<double> output_error_;  ///< written once; make() reads it in other threads
};

}  // namespace vfm::generate
