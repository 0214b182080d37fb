// Estimates a clip's cost, part by part, for vfm-generate cost (generate/cost/generate_cost.h) and
// --parallel auto (generate/ranks/choose_parallel.h). Only configurations and headers are read, no
// weights. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "generate/generate.h"
#include "generate/request/clip_request.h"
#include "generate/sampling/network_headers.h"
#include "generate/sampling/sample_options.h"
#include "models/folder/model_facts.h"
#include "models/part_cost.h"
#include "models/predict.h"
#include "models/text_encoder.h"
#include "models/tokenizer_family.h"

namespace vfm::generate {

/// A part of the model: facts from its headers, and its cost for the clip.
struct ModelPart {
  std::string type;
  double file_bytes = 0;    ///< bytes of the weights' files; of two networks, of the larger one
  double loading_bytes = 0;  ///< the most that reading has beside the weights
  double mapped_bytes = 0;  ///< bytes of files that stay mapped while in use
  models::PartCost cost;    ///< flops of the clip
  /// Memory while matrices that will be quantised to 8 bits are still whole: at rest, and with a
  /// pass.
  double whole_bytes = 0, whole_pass_bytes = 0;
  double held_bytes = 0;  ///< bytes that the allocator holds for activations, with its reserve
  /// For a network shared by ranks, on a GPU: times of the clip in which one rank waits.
  std::vector<models::TimeLine> exchanges = {};
  std::optional<models::CosmosSplit> split = {};  ///< of a tokenizer from a folder

  Json json() const;
};

class ClipEstimate {
 public:
  /// `opened` is the job's model. Throws Error{usage} for a folder that cannot generate; the
  /// message lists all mismatches.
  ClipEstimate(const GenerateJob& job, const models::OpenedModel& opened);

  /// Sets how ranks share the clip from now on; at first as the job says. Throws Error{usage} if
  /// they cannot share it so.
  void share(const dist::Layout& parallel, int per_node);

  /// The clip, and the latent that it is made from.
  struct Clip {
    ClipRequest request;
    Extents latent;
    std::int64_t tokens = 0, text_tokens = 0;
    std::int64_t samples = 1;  ///< of a pass: two with guidance, of any network
    int given_frames = 0;  ///< latent frames
  };
  const Clip& clip() const { return clip_; }
  const SampleOptions& sampling() const { return sampling_; }
  /// For a model with two networks that are chosen by noise level: how many of the passes each of
  /// them makes.
  std::optional<std::array<int, 2>> passes_of_two() const;
  /// Samples of a pass of each network of such a model.
  std::array<std::int64_t, 2> samples_of_two() const;
  /// Samples of all passes together.
  std::int64_t samples_of_passes() const;
  const ModelFacts& facts() const { return facts_; }
  const NetworkHeaders& network() const { return network_; }
  DType compute() const { return compute_; }
  const dist::Layout& parallel() const { return parallel_; }  ///< with the chosen kind of cp

  /// With `gpu`, the cost includes exchanges between ranks.
  ModelPart network_part(const models::Gpu* gpu) const;
  ModelPart tokenizer_part() const;
  ModelPart text_part() const;

  /// Bytes of a rank in each phase, in order, with the program's own memory; and their peak.
  struct Memory {
    double program = 0, peak = 0;
    std::array<std::pair<const char*, double>, 4> phases;
  };
  Memory memory(const ModelPart& network, const ModelPart& tokenizer, const ModelPart& text) const;
  /// The time of the clip on a GPU, by lines, over all passes of the network. `pass` is the total
  /// of one pass.
  struct Time {
    std::vector<models::TimeLine> lines;
    double pass = 0;
  };
  Time time(const models::Gpu& gpu, const ModelPart& network, const ModelPart& tokenizer,
            const ModelPart& text) const;

 private:
  void read_text_encoder();
  bool foreign_text() const { return facts_.text_encoder && facts_.text_encoder->foreign(); }
  ModelShape shape_of_model() const;
  void check_fp8() const;
  void plan_clip();
  void add_encoding(models::PartCost& cost) const;

  const GenerateJob& job_;
  ModelFacts facts_;
  NetworkHeaders network_;
  models::TokenizerFacts tokenizer_;
  std::optional<models::TextEncoderFolder> text_;
  ModelShape shape_;
  SampleOptions own_sampling_, sampling_;
  DType compute_ = DType::f32;
  Clip clip_;
  dist::Layout parallel_;
};

}  // namespace vfm::generate
