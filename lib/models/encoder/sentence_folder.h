// How the folder of a model that gives one vector a text wants it: which model and tokenizer, how
// a text is cut, and how the vector comes of its tokens.
//
//   sentence-transformers   modules.json: Transformer, Pooling, Normalize or not. Its folder for
//                           pooling (1_Pooling/config.json), sentence_bert_config.json,
//                           config_sentence_transformers.json
//   a plain BERT            no modules.json: mean pooling, normalised
//   CLIP, SigLIP            the text tower's own vector, normalised
//
// Texts lose the white space at their ends first, as sentence-transformers and SigLIP's training
// have it. What is not known here is an Error{usage} that names it, never a guess.
// Source: sentence-transformers 5 (Transformer, Pooling, Normalize) for the files.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "models/folder/hf_folder.h"
#include "text/tokenizer.h"

namespace vfm::models {

enum class Pooling { mean, cls, own };  ///< own: the model gives one vector itself

/// What goes before a text, by what it is for, as config_sentence_transformers.json has it:
///   any        its default_prompt_name: sentence-transformers' encode()
///   query      "query" of its prompts: encode_query()
///   document   "document", else "passage", else "corpus": encode_document()
/// A folder that has none for queries, or documents, has the default go before them, unless that is
/// the one of the other kind.
struct SentencePrompts {
  std::string any, query, document;
};

struct SentenceRule {
  Pooling pooling = Pooling::mean;
  bool normalised = true;
  bool lower_case = false;
  bool canonical = false;  ///< SigLIP: without ASCII punctuation, white space as single spaces
  std::string prompt;      ///< goes before each text: SentencePrompts::any
  bool pools_prompt = true;
  int most_tokens = 0;  ///< of the model, with special ones
  int padded_to = 0;    ///< tokens, or 0: as many as there are
  bool pad_left = false;
  std::int32_t padding = 0;

  /// "mean, normalised", for people and for columns.
  std::string words() const;
  /// All of it, for a hash.
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

/// Throws Error{usage} where a prompt would have to be left out of the pooling.
void check_prompt(const SentenceRule& rule, const std::string& prompt, const std::string& folder);

/// Whether models of the type are known here: "bert", "clip", "siglip"...
bool is_sentence_type(std::string_view type);

/// Whether the folder is of sentence-transformers, or has a model of such a type in its config.json
/// itself. Throws nothing.
bool is_sentence_folder(const std::string& folder);

/// Reads no weights but for the hash, which is left out unless asked for. Throws Error{usage}.
SentenceFolder open_sentence_folder(const std::string& folder, bool hashed);

}  // namespace vfm::models
