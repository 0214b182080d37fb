// The autoregressive models of Cosmos-1.0 as NVIDIA publishes them, for models/folder/hf_folder.h:
// a folder with model.pt, or the same tensors in a .safetensors file, and usually a config.json.
//
//   tok_embeddings.weight    [V, D], or [V + 64, D] with a start token
//   layers.I.attention_norm.weight
//   layers.I.attention.{wq,wk,wv,wo,q_norm,k_norm}.weight
//   layers.I.cross_attention_norm.weight, layers.I.cross_attention.{...}.weight: models with text
//   layers.I.ffn_norm.weight
//   layers.I.feed_forward.{w1,w2,w3}.weight
//   norm.weight
//   output.weight            [V, D]
//
// All names may begin with "model." or another wrapper (models/folder/hf_names.h). A checkpoint of
// NVIDIA's trainer may have the names of Transformer Engine, with separate queries, keys and norms,
// and w1 above w3 in one matrix.
//
// config.json has the settings of NVIDIA's ModelConfig (dim, n_layers, apply_yarn, ...). Missing
// settings follow from the tensors, and from what NVIDIA's inference sets for such a model: a model
// with text has a start token and absolute positions; a model of 40 layers of width 5120 has YaRN.
// Source: cosmos-predict1, autoregressive/configs/base/model_config.py, utils/checkpoint.py and
// inference/world_generation_pipeline.py.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/json_fwd.h"
#include "io/tensor_set.h"

namespace vfm::models {

/// Returns whether `settings`, the config.json or {} without one, may be those of such a model.
bool may_be_published_decoder(const Json& settings);
/// Returns whether the tensors have the names of such a model.
bool is_published_decoder(const io::TensorSet& set);

/// The model's config.json in the format used here (models/decoder/decoder_json.h). Throws
/// Error{usage} for settings of another model, and for shapes that do not make a model.
Json published_decoder_config(const io::TensorSet& set, const Json& settings);

/// The tensors with the names and layout used here, without a copy of the data. `config` is the
/// result of published_decoder_config(). Drops the rows that pad a table to a multiple of 64. Names
/// that do not belong to the model stay as they are.
std::vector<io::TensorView> published_decoder_tensors(const io::TensorSet& set, const Json& config);

}  // namespace vfm::models
