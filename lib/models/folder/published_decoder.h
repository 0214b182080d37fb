// The autoregressive models of Cosmos-1.0 as NVIDIA publishes them, for models/folder/hf_folder.h:
// a folder with model.pt, or the same tensors in a .safetensors file, and mostly a config.json.
//
//   tok_embeddings.weight    [V, D], or [V + 64, D] with a token for the start
//   layers.I.attention_norm.weight
//   layers.I.attention.{wq,wk,wv,wo,q_norm,k_norm}.weight
//   layers.I.cross_attention_norm.weight, layers.I.cross_attention.{...}.weight: models with text
//   layers.I.ffn_norm.weight
//   layers.I.feed_forward.{w1,w2,w3}.weight
//   norm.weight
//   output.weight            [V, D]
//
// All names may begin with "model." or another wrapper (models/folder/hf_names.h). A checkpoint of
// their trainer may have the names of Transformer Engine, with queries, keys and norms by
// themselves and w1 over w3 in one matrix.
//
// config.json has the settings of their ModelConfig (dim, n_layers, apply_yarn, ...). What it does
// not say follows from the tensors, and from what their inference sets for such a model: a model
// with text begins with a token and has absolute positions; one of 40 layers of width 5120 has
// YaRN. Source: cosmos-predict1, autoregressive/configs/base/model_config.py, utils/checkpoint.py
// and inference/world_generation_pipeline.py.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/json_fwd.h"
#include "io/tensor_set.h"

namespace vfm::models {

/// Whether the settings of a config.json, {} if there is none, may be those of such a model.
bool may_be_published_decoder(const Json& settings);
/// Whether the tensors have its names.
bool is_published_decoder(const io::TensorSet& set);

/// The model's config.json as this program has it (models/decoder/decoder_json.h). Throws
/// Error{usage} for settings that make another model, and for shapes that make none.
Json published_decoder_config(const io::TensorSet& set, const Json& settings);

/// The tensors as this program has them; the data stay where they are. `config` is what
/// published_decoder_config() says. Of a table that was filled up to whole 64 rows the others are
/// left out. Names that are none of the model's stay as they are.
std::vector<io::TensorView> published_decoder_tensors(const io::TensorSet& set, const Json& config);

}  // namespace vfm::models
