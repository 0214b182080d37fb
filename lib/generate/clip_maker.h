// Makes clips with this process's generator, alone or with the ranks beside it: the model,
// requests, the measurement of FP8 or 8-bit weights before the first clip, and each clip's file and
// record.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "dist/world.h"
#include "generate/clip_makers.h"
#include "generate/generate.h"
#include "generate/request/named_request.h"
#include "generate/sampling/usable_model.h"

namespace vfm::generate {

/// Returns a folder of this process in `folder`, for temporary files of a part.
std::string own_folder(const std::string& folder);

/// Thread-safety: as ClipMakers. With several ranks, all calls are on the thread that made the
/// World.
class ClipMaker final : public ClipMakers {
 public:
  /// Opens and loads the job's model. Without `reports` a run elsewhere reads the prompts and
  /// writes the records. `world`, `progress` and `manifest` must outlive this object. Throws
  /// Error{usage}, before any work, for a model that cannot be used, and for options that do not
  /// suit it or several ranks. A collective.
  ClipMaker(const GenerateJob& job, dist::World& world, Progress& progress,
            io::ManifestWriter& manifest, bool reports = true);
  ClipMaker(const ClipMaker&) = delete;
  ClipMaker& operator=(const ClipMaker&) = delete;

  bool first() const override { return ranks_.first(); }
  bool helped() override;
  bool begin_part(const std::string& temporary) override;
  bool make_in_rounds(const std::function<std::optional<Asked>()>& next,
                      const std::function<void(Result&)>& done, share::Slots& slots) override;
  ClipFolder& output() override { return *output_; }
  const ModelInUse& in_use() const override { return in_use_; }
  Asked ask(Prompt prompt) override;
  std::optional<double> output_error() const override { return output_error_; }
  /// Uses FP8 or 8-bit weights from now on if another process has measured their error.
  void use_known(std::optional<double> output_error);
  Result make(Asked& asked) override { return make(asked, {}); }
  void report(const std::string& incomplete) override;
  /// Writes the job's page about these clips.
  void report(const std::vector<Json>& records, const std::string& incomplete) const;
  void finished() override;

 private:
  Generator& generator() { return *model_.generator; }
  const Generator& generator() const { return *model_.generator; }
  void measure(const NamedRequest& request);
  std::vector<Asked> read_round(const std::function<std::optional<Asked>()>& next, std::size_t most,
                                std::vector<std::uint64_t>& costs, bool& more) const;
  std::vector<Result> make_all(std::vector<Asked>& asked, share::Slots& slots);
  /// The first steps of a clip, or all of its codes, and the time that they took.
  struct Begun {
    models::SamplerState state;  ///< of step 0: there are none
    std::optional<Latent> latent = {};
    double seconds = 0;
  };
  Begun begin(const Asked& asked);
  std::vector<Begun> write_codes(const std::vector<Asked>& asked);
  bool is_made(const NamedRequest& request, Json record) const;
  Result make(Asked& asked, Begun begun);
  Json record_of(const NamedRequest& request) const;

  Progress& progress_;
  UsableModel model_;
  const GenerateJob& job_ = model_.job;
  const ClipRanks& ranks_ = *model_.ranks;
  std::optional<ClipFolder> output_;
  ModelInUse in_use_;
  std::optional<RequestMaker> requests_;
  std::optional<double> output_error_;
  std::optional<io::TemporaryPlace> temporary_;  ///< of a part, in a rank that is not first()
};

}  // namespace vfm::generate
