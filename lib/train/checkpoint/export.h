// A trained model for other programs (vfm-train export): the weights that vfm-generate samples
// with, as a folder that diffusers' and peft's from_pretrained takes.
//
//   DIR/model_index.json, transformer/, scheduler/, vae/, text_encoder/, tokenizer/
//       a pipeline, where diffusers has a class for each part (Cosmos), and all of them are there
//   DIR/config.json, diffusion_pytorch_model.safetensors     the network alone, else
//   DIR/pytorch_lora_weights.safetensors, adapter_model.safetensors, adapter_config.json
//       adapters that were not merged, for diffusers and for peft
//   DIR/vfm-export.json      what it was made of; with this file the folder is ours to replace
// Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json_fwd.h"

namespace vfm::train {

struct ExportOptions {
  enum class Parts { link, copy, none };

  std::string run;      ///< of vfm-train, or one of its checkpoints
  std::string folder;   ///< DIR
  bool average = true;  ///< the averaged weights, where there are some
  bool merge = true;    ///< of a run of adapters the model with them; else these alone
  std::string under;    ///< of such a run: where the model under them is now; "": where it was
  Parts parts = Parts::link;  ///< of a pipeline: how the text encoder gets there; or no pipeline
  std::string tokenizer, text_encoder;  ///< where they are now; "": where they were
  bool force = false;                   ///< replaces an export of something else
};

/// Writes the folder, which appears whole or not at all, and returns a record of it:
/// {"kind":"model","path":DIR,"class":…,"pipeline":… or null,"weights":"ema" or "model","from":…,
/// "step":N}. One that is there already, of the same, stays. Warns of what a pipeline would need
/// and is not there, and of what it does otherwise than vfm. Throws Error{usage}: no such run,
/// parts that are not those of the run, or a folder with something else in it.
Json export_model(const ExportOptions& options);

}  // namespace vfm::train
