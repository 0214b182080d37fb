// Reads the folder of a model that gives one vector per text: which model and tokenizer it has, how
// a text is cut, and how the vector is made from the tokens.
//
//   sentence-transformers   modules.json: Transformer, Pooling, perhaps Normalize. The folder for
//                           pooling has 1_Pooling/config.json; also sentence_bert_config.json,
//                           config_sentence_transformers.json
//   a plain BERT            no modules.json: mean pooling, normalised
//   CLIP, SigLIP            the text tower's own vector, normalised
//
// White space at the ends of a text is removed first, as in sentence-transformers and in SigLIP's
// training. A setting that is unknown here is an Error{usage} that names it, never a guess.
// Source: sentence-transformers 5 (Transformer, Pooling, Normalize) for the files.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "models/folder/hf_folder.h"
#include "text/tokenizer.h"

namespace vfm::models {

enum class Pooling { mean, cls, own };  ///< own: the model gives one vector itself

/// Prompts that go before a text, by the text's purpose, from config_sentence_transformers.json:
///   any        the prompt that default_prompt_name names: sentence-transformers' encode()
///   query      the prompt "query": encode_query()
///   document   the prompt "document", else "passage", else "corpus": encode_document()
/// If the folder has no prompt for queries or none for documents, that purpose gets the default
/// prompt, unless the default is the prompt of the other purpose.
struct SentencePrompts {
  std::string any, query, document;
};

struct SentenceRule {
  Pooling pooling = Pooling::mean;
  bool normalised = true;
  bool lower_case = false;
  bool canonical = false;  ///< SigLIP: removes ASCII punctuation, makes white space single spaces
  std::string prompt;      ///< goes before each text: SentencePrompts::any
  bool pools_prompt = true;
  int most_tokens = 0;  ///< the model's limit, with special tokens
  int padded_to = 0;    ///< tokens; 0: texts are not padded
  bool pad_left = false;
  std::int32_t padding = 0;

  /// "mean, normalised", for people and for columns.
  std::string words() const;
  /// All fields, for a hash.
  Json to_json() const;
};

struct SentenceFolder {
  std::unique_ptr<HfComponent> component;
  std::string tokenizer_file;
  std::unique_ptr<text::Tokenizer> tokenizer;
  SentenceRule rule;
  SentencePrompts prompts;
  std::string hash;  ///< changes with the model, the tokenizer and the rule
};

/// Throws Error{usage} if the pooling has to leave the prompt out, which is not supported.
void check_prompt(const SentenceRule& rule, const std::string& prompt, const std::string& folder);

/// The types of models that are supported: BERTs, then text towers, of two parts or alone.
inline constexpr std::array<std::string_view, 9> kSentenceTypes = {"bert",
                                                                   "roberta",
                                                                   "xlm-roberta",
                                                                   "clip",
                                                                   "clip_text_model",
                                                                   "siglip",
                                                                   "siglip_text_model",
                                                                   "siglip2",
                                                                   "siglip2_text_model"};
/// Returns whether one of them is a text tower.
bool is_text_tower(std::string_view type);

/// Returns whether the folder is one of sentence-transformers, or has a model of a supported type
/// in its config.json. Throws nothing.
bool is_sentence_folder(const std::string& folder);

/// Opens a folder. Reads weights only for the hash, which is computed only if `hashed`. Throws
/// Error{usage}.
SentenceFolder open_sentence_folder(const std::string& folder, bool hashed);

}  // namespace vfm::models
