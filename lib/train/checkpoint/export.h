// Exports a trained model for other programs (vfm-train export): the weights that vfm-generate
// uses, in a folder for from_pretrained of diffusers and of peft.
//
//   DIR/model_index.json, transformer/, scheduler/, vae/, text_encoder/, tokenizer/
//       a pipeline, if diffusers has a class for each part (Cosmos) and all parts are available
//   DIR/config.json, diffusion_pytorch_model.safetensors     otherwise the network alone
//   DIR/pytorch_lora_weights.safetensors, adapter_model.safetensors, adapter_config.json
//       adapters that are not merged, for diffusers and for peft
//   DIR/vfm-export.json      the origin of the export; a folder with this file may be replaced
// In a bucket the files are written under their final names, between DIR/vfm-export.begun and the
// mark: a killed export has no mark, and the next one replaces it.
// Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json_fwd.h"

namespace vfm::train {

struct ExportOptions {
  enum class Parts { link, copy, none };

  std::string run;      ///< a run of vfm-train, or one of its checkpoints
  std::string folder;   ///< DIR, which may be in a bucket
  bool average = true;  ///< export the averaged weights, if there are some
  bool merge = true;  ///< for a run of adapters: merge them into the model, else export them alone
  std::string under;    ///< for such a run: where the base model is now; "": where it was
  /// How a pipeline gets its text encoder; none: without a pipeline. Links become copies where the
  /// encoder or DIR is in a bucket.
  Parts parts = Parts::link;
  std::string tokenizer, text_encoder;  ///< where they are now; "": where they were
  bool force = false;                   ///< replace an export of something else
};

/// Writes the folder, whole or not at all, and returns a record of it: {"kind":"model","path":DIR,
/// "class":…,"pipeline":… or null,"weights":"ema" or "model","from":…,"step":N}. If the folder has
/// the same export already, it stays. Warns of parts that a pipeline needs and that are missing,
/// and of differences between the pipeline and vfm-generate. Throws Error{usage} if the run does
/// not exist or is a model of others, if the parts given are not those of the run, or if the folder
/// has something else in it.
Json export_model(const ExportOptions& options);

}  // namespace vfm::train
