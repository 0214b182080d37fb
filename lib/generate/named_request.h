// A request for one clip that lacks nothing: what a prompt asks for, made whole with what the model
// and the command line say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/held_json.h"
#include "generate/clip_output.h"
#include "generate/generate.h"
#include "generate/generator.h"
#include "generate/prompts.h"

namespace vfm::generate {

/// All that decides a clip's bytes, and its name. Once it is made nobody changes it.
struct NamedRequest {
  ClipRequest clip;
  SampleOptions sampling;
  GivenFiles files;     ///< with their hashes
  std::string name;     ///< of the files, without extension
  std::string encoder;  ///< FFmpeg's name; empty: the default one, or none is used
  int quality = 0;
  HeldJson extra;  ///< the prompt's other keys
};

/// What clips are made with, apart from their requests.
struct ModelInUse {
  const Generator& generator;
  std::string hash;
  models::Fp8Parts fp8;
  Device device = Device::cpu;
  std::string tokenizer_compute = {};  ///< of choose_compute()
  std::string parallel = {};           ///< of ClipParallel::name()
  std::string quantize = {};           ///< name of the matrices' form; empty: their own
};

/// What the job says of where the model's tokenizer is, and of what it computes in: returns what
/// choose_compute() does. Parts of a pipeline of which one is elsewhere get hashes first, to
/// compare it with.
std::string move_parts(ModelFacts& facts, const GenerateJob& job);
/// A tokenizer from a folder shall compute in what was asked for. Returns that, "f32" or "bf16", if
/// it would not have done so on `device` by itself; else nothing.
std::string choose_compute(models::TokenizerConfig& tokenizer, std::optional<DType> compute,
                           Device device);

/// Warns of a guidance that the pipelines of diffusers take as none, and vfm does not.
void note_guidance(const std::string& model, double guidance);

/// Thread-safety: one thread, prompt after prompt in their order, which decides names and seeds.
class RequestMaker {
 public:
  /// All three must outlive it.
  RequestMaker(const GenerateJob& job, const ModelInUse& in_use, const ClipOutput& output)
      : job_(job), in_use_(in_use), output_(output) {}

  /// Reads the files that the prompt names. A text that is repeated without a name or a seed of its
  /// own gets the next seed. Warns, once a run, of sizes beyond training, of sizes that the encoder
  /// cannot hold, and of a guidance that other programs take to mean none. Throws Error for what
  /// the model cannot make, another model than made the record, and a name that is taken.
  std::shared_ptr<const NamedRequest> make(Prompt prompt);
  /// From now on no name is taken: somebody else sees to that.
  void forget_names() { names_.clear(); }

 private:
  void note_sizes(const NamedRequest& request);
  void take_name(NamedRequest& request, bool own_seed);

  const GenerateJob& job_;
  const ModelInUse& in_use_;
  const ClipOutput& output_;
  std::set<std::string> names_;  ///< taken in this run
  bool noted_size_ = false, noted_odd_ = false, noted_guidance_ = false;
};

}  // namespace vfm::generate
