// From a prompt to a latent, and to frames: text encoder, guided sampling with the network,
// tokenizer. With an autoregressive model: from a prompt to codes, one after the other.
//
// A clip depends only on its request, the options and the weights, not on other clips or threads.
// Therefore a clip is sampled alone (its guided and unguided halves are one pack), and its noise is
// element i of the stream (seed, prompt).
// Shape letters: C latent channels, t h w latent frames, rows, columns; T H W of the pixels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generate/decode/frames.h"
#include "generate/request/clip_request.h"
#include "generate/sampling/codes.h"
#include "generate/sampling/denoiser.h"
#include "generate/sampling/sample_options.h"
#include "models/dit/fp8.h"
#include "models/folder/load_model.h"

namespace vfm::generate {

class Generator {
 public:
  /// `cache`: where text embeddings are kept (generate/sampling/prompt_encoder.h). `text_encoder`:
  /// where the text encoder's folder is now, if it has moved. `tokenizer_memory`: the `memory` of
  /// make_tokenizer(). Throws Error naming what the checkpoint lacks or what does not fit together.
  explicit Generator(models::LoadedModel model, const std::string& cache = {},
                     const std::string& text_encoder = {}, std::uint64_t tokenizer_memory = 0);
  /// The same with the model's tokenizer, already made.
  Generator(models::LoadedModel model, std::unique_ptr<models::VideoTokenizer> tokenizer,
            const std::string& cache, const std::string& text_encoder);
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  const models::LoadedModel& model() const;
  const ModelFacts& facts() const { return model().facts; }
  /// The default sampling of its clips.
  const SampleOptions& sampling() const;
  const models::VideoTokenizer& tokenizer() const;
  /// Return, in pixels, the most frequent size of training videos (or of stills if all were
  /// stills), and the largest of each extent.
  Extents usual() const;
  Extents largest() const;
  /// True if the request exceeds the trained size in space or time. Then positions are squeezed
  /// into the trained range: the picture is drawn larger, or the motion slower, not repeated.
  bool beyond_training(const ClipRequest& request) const;
  /// The facts that decide which clips the model can make.
  const ModelShape& shape() const;
  /// Returns the latent of the request's size, without values.
  Latent latent_of(const ClipRequest& request) const;
  /// Throws Error{usage} if decoding the clip exceeds the tokenizer's memory limit.
  void check_decodes(const ClipRequest& request) const;
  /// Whether the model writes codes; else it is a diffusion model.
  bool autoregressive() const;
  /// True if the model takes given frames: video-to-world models, and all autoregressive ones.
  bool video_to_world() const;
  /// How much FP8 changes the network's first output for this clip (models::fp8_error). Leaves FP8
  /// off. Throws what denoise() throws; Error{usage} for an autoregressive model. Not thread-safe.
  double fp8_error(models::Fp8Parts parts, const ClipRequest& request,
                   const SampleOptions& options);
  /// Generates in FP8 from now on, or without. Throws what DiffusionNetwork::set_inference_fp8
  /// throws. Not thread-safe.
  void set_fp8(models::Fp8Parts parts);

  /// Calls DiffusionNetwork::quantize(). Returns how much that changes the network's first output
  /// for this clip (models::output_change). Throws what denoise() throws. Not thread-safe.
  double quantize(const ClipRequest& request, const SampleOptions& options);
  void quantize();  ///< without a measurement

  /// From now on `network`, which must outlive this object, computes the outputs of the model's
  /// network or writes its codes, together with other ranks: then denoise() and write() are for one
  /// thread.
  void share(ClipNetwork& network);

  /// For an autoregressive model: what denoise() writes for a clip, and the clips of several such
  /// jobs, which are written at the same time. Throw what denoise() throws.
  CodeJob code_job(const ClipRequest& request, const SampleOptions& options) const;
  std::vector<Latent> write(std::span<const CodeJob> jobs, const HowFarOf& how_far = {}) const;

  /// Returns the clip's latent, or its codes. Begins at `state` if that has a step, else at the
  /// first noise. `how_far` is called for each step, or each code. Throws Error{usage} for an
  /// impossible request, Stopped when asked to stop. Thread-safe; computes with as many OpenMP
  /// threads as the calling thread may use.
  Latent denoise(const ClipRequest& request, const SampleOptions& options,
                 models::SamplerState state = {}, const models::AfterStep& after_step = {},
                 const HowFar& how_far = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::generate
