// vfm-generate: makes clips from prompts. Each clip is written whole or not at all.
//
// A clip's address is a hash of everything that decides its bytes: weights, prompts, seed,
// sampling, size, files, encoder (generate/files/clip_output.h). While a clip is made in a folder,
// its unfinished work lies there as well (generate/files/latent_files.h): first the state of the
// sampling, then the latent. The same command resumes from it, and gives the same bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "generate/ranks/clip_ranks.h"
#include "generate/request/prompts.h"
#include "models/dit/fp8.h"
#include "models/folder/load_model.h"
#include "models/predict.h"
#include "shard/part_output.h"
#include "share/slots.h"

namespace vfm::generate {

struct GenerateJob {
  std::string model;                   ///< run, checkpoint or diffusers folder
  std::string tokenizer;               ///< folder of the tokenizer; empty: as the model says
  std::uint64_t tokenizer_memory = 0;  ///< bytes, as for models::make_tokenizer()
  bool ema = true;                     ///< use averaged weights if the checkpoint has them
  std::vector<std::string> prompts;    ///< "-": lines on standard input
  Prompt defaults;                     ///< options that hold for all prompts
  std::string output;                  ///< folder, or "-": Y4M on standard output
  bool force = false;
  bool latents_only = false;   ///< write latents without decoding
  double save_every = 10;      ///< seconds between writes of a sampling's state
  std::string cache;           ///< folder for text embeddings; empty: none
  models::AdapterChoice lora;  ///< no sets: none, or those of the model itself
  std::string text_encoder;    ///< folder of the text encoder; empty: as the model says
  Device device = Device::cpu;
  /// For generation_cost() with Device::cuda: GPU to predict for.
  const models::Gpu* gpu = nullptr;
  /// f32 or bf16. None: f32 on the CPU; on a GPU the type of the model's training. FP8 needs bf16.
  std::optional<DType> compute;
  models::Fp8Parts fp8;  ///< the parts computed in FP8
  std::optional<ops::RowFormat> quantize = {};  ///< 8-bit form of the blocks' matrices
  /// The largest allowed change of the network's first output by FP8 or `quantize`, relative to its
  /// size.
  double tolerance = 0.15;
  dist::Layout parallel;  ///< how ranks share one clip
  std::string encoder;    ///< name in FFmpeg; empty: the default encoder
  int quality = 12;       ///< 0..51
  std::string report;     ///< HTML file, or empty
  std::string dataset;    ///< folder of shards that the report shows beside the clips, or empty
  /// The parts to make (generate/part_clips.h). None: the whole work.
  std::optional<shard::PartTask> parts = {};
};

class ClipMakers;  // generate/clip_makers.h

/// Reads the prompts of the job, has `makers` make their clips, and writes manifest records to
/// standard output in the order of the prompts (not with "-" as output). Returns the number of
/// prompts that failed and were recorded. Throws Error if there is no prompt, if nothing could be
/// made, or if FP8 or 8-bit weights change the network's first output more than allowed.
///
/// With ranks a collective: they deal the prompts among themselves, or share each clip as
/// job.parallel says (generate/ranks/clip_ranks.h). Rank 0 reads prompts and writes the manifest;
/// the other ranks return 0. All write to one folder, so they need a common file system.
long generate_clips(const GenerateJob& job, ClipMakers& makers, share::Slots& slots,
                    Progress& progress);

}  // namespace vfm::generate
