// A complete request for one clip: a prompt with the defaults of the model and the command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "generate/files/clip_output.h"
#include "generate/generate.h"
#include "generate/request/prompts.h"
#include "generate/sampling/generator.h"

namespace vfm::generate {

/// Everything that decides a clip's bytes, and its name. It never changes once made.
struct NamedRequest {
  ClipRequest clip;
  SampleOptions sampling;
  GivenFiles files;     ///< with the hashes of the files
  std::string name;     ///< name of the clip's files, without extension
  std::string encoder;  ///< name in FFmpeg; empty: the default encoder, or none is used
  int quality = 0;
  HeldJson extra;  ///< the prompt's other keys
};

/// What is known of the model and settings that make clips, apart from their requests. Values, so
/// that it can be known without the model.
struct ModelInUse {
  std::string hash;
  bool ema = false;  ///< the weights are averaged
  bool autoregressive = false;
  DType compute = DType::f32;
  std::vector<models::AdaptersInUse> adapters;
  models::Fp8Parts fp8;
  Device device = Device::cpu;
  std::string tokenizer_compute;  ///< result of choose_compute()
  std::string parallel;           ///< result of clip_layout_name()
  std::string quantize;           ///< name of the 8-bit form of the matrices; empty: their own type
};

/// Sets the tokenizer's folder and type of computation in `facts` from the job. Returns the result
/// of choose_compute(). If a part of a `pipeline` has moved, first hashes the parts, to compare the
/// moved part.
std::string move_parts(ModelFacts& facts, const GenerateJob& job, bool pipeline);
/// Makes a tokenizer from a folder compute in the type `compute`. Returns "f32" or "bf16" if that
/// is not the tokenizer's default on `device`; else "".
std::string choose_compute(models::TokenizerConfig& tokenizer, std::optional<DType> compute,
                           Device device);

/// Warns of a guidance value that diffusers' pipelines treat as no guidance, but vfm does not:
/// those up to `none` (ModelFacts::no_guidance).
void note_guidance(double none, double guidance);

/// Tells of the other shift of a model with two (SampleOptions::diffusers), unless the choice
/// says which. `own`: the model's sampling.
void note_shift(const SampleOptions& own, const SampleChoice& choice);

/// Thread-safety: one thread.
class RequestMaker {
 public:
  /// All four arguments must outlive this object.
  RequestMaker(const GenerateJob& job, const Generator& generator, const ModelInUse& in_use,
               const ClipFolder& output)
      : job_(job), generator_(generator), in_use_(in_use), output_(output) {}

  /// Reads the files that the prompt names. The request has the prompt's name, or none yet. Warns
  /// once a run of sizes beyond training, of sizes that the encoder cannot hold, of a guidance that
  /// other programs treat as none, and of another shift in diffusers. Throws Error for an
  /// impossible clip and a record of another model.
  std::shared_ptr<NamedRequest> make(Prompt prompt);

 private:
  void note_sizes(const NamedRequest& request);

  const GenerateJob& job_;
  const Generator& generator_;
  const ModelInUse& in_use_;
  const ClipFolder& output_;
  bool noted_size_ = false, noted_odd_ = false, noted_sampling_ = false;
};

/// The names of a run's clips. Thread-safety: one thread, in the order of the prompts, since names
/// and seeds depend on earlier ones.
class ClipNames {
 public:
  /// Names a request that has no name, by its text and address. A repeated text gets the next seed,
  /// unless `own_seed`. Throws Error for a name or a clip that was asked for before.
  void take(NamedRequest& request, bool own_seed, const ModelInUse& in_use,
            const ClipFolder& output);

 private:
  std::set<std::string> names_;
};

}  // namespace vfm::generate
