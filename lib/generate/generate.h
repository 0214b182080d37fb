// vfm-generate: makes clips from prompts, each whole or not at all.
//
// A clip's address is a hash of all that decides its bytes: weights, prompts, seed, sampling, size,
// files, encoder (generate/files/clip_output.h). While a clip is made in a folder, unfinished work
// lies beside it (generate/files/latent_files.h): the state of the sampling, and then the latent.
// The same command resumes from it, and ends with the same bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "generate/ranks/clip_ranks.h"
#include "generate/request/prompts.h"
#include "io/manifest.h"
#include "models/dit/fp8.h"
#include "models/folder/load_model.h"
#include "models/predict.h"
#include "share/slots.h"

namespace vfm::generate {

struct GenerateJob {
  std::string model;                   ///< run, checkpoint or diffusers folder
  std::string tokenizer;               ///< folder of its tokenizer; empty: where the model says
  std::uint64_t tokenizer_memory = 0;  ///< of models::make_tokenizer()
  bool ema = true;                     ///< averaged weights, where the checkpoint has them
  std::vector<std::string> prompts;    ///< "-": lines on standard input
  Prompt defaults;                     ///< options that hold for all of them
  std::string output;                  ///< folder, or "-": Y4M on standard output
  bool force = false;
  bool latents_only = false;   ///< writes the model's latents without decoding
  double save_every = 10;      ///< seconds after which a sampling's state is kept
  std::string cache;           ///< for text embeddings; empty: none
  models::AdapterChoice lora;  ///< no sets: none, or those of the model itself
  std::string text_encoder;    ///< where its folder is, if not where the model says; or empty
  Device device = Device::cpu;
  const models::Gpu* gpu = nullptr;  ///< for generation_cost(): to predict for, with Device::cuda
  /// f32 or bf16; nothing: on the CPU f32, on a GPU as the model was trained. FP8 wants bf16.
  std::optional<DType> compute;
  models::Fp8Parts fp8;  ///< the parts computed in FP8
  std::optional<ops::RowFormat> quantize = {};  ///< the form of the blocks' matrices
  /// The most that FP8 or this may change the network's first output, as a fraction of its size.
  double tolerance = 0.15;
  ClipParallel parallel;  ///< how ranks share one clip
  std::string encoder;    ///< FFmpeg's name; empty: the default one
  int quality = 12;       ///< 0..51
  std::string report;     ///< HTML file, or empty
  std::string dataset;    ///< for the report: a folder of shards to show beside the clips, or empty
};

/// Returns how many prompts failed and were recorded. Manifest records go to standard output in the
/// order of the prompts (not with "-" as output). Throws Error when there is no prompt or nothing
/// could be made, or when FP8 or weights in 8 bits change the network's first output by more than
/// allowed.
///
/// A collective: the ranks of `world` deal the prompts among themselves, or share each clip as
/// job.parallel says (generate/ranks/clip_ranks.h). Rank 0 reads prompts and writes the manifest;
/// the other ranks return 0. They write to one folder, so they need one file system. Throws
/// Error{usage} for what ranks cannot share.
long generate_clips(const GenerateJob& job, dist::World& world, share::Slots& slots,
                    Progress& progress, io::ManifestWriter& manifest);

}  // namespace vfm::generate
