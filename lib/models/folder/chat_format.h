// How a model's folder writes a conversation: its chat template, and the special tokens that
// templates name.
//
// The template is the first that is found, in the same order as in transformers:
//   processor_config.json   "chat_template"
//   chat_template.json      "chat_template"
//   chat_template.jinja     the whole file
//   tokenizer_config.json   "chat_template": a text, or a list from which "default" is taken
// Special tokens come from tokenizer_config.json, and missing ones from special_tokens_map.json.
// Source: transformers 5.24, processing_utils.py and tokenization_utils_base.py.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "text/chat_template.h"

namespace vfm::models {

struct ChatFormat {
  text::ChatTemplate chat;
  HeldJson special_tokens = HeldJson::object();  ///< {"bos_token": "<s>", ...}
  std::string file;                              ///< file that has the template

  /// The text of `messages` ([{"role": "user", "content": ...}, ...]). If `answer`, the text ends
  /// where an answer begins. `more` has other variables that the template may use. Throws
  /// Error{usage}.
  std::string prompt(const Json& messages, bool answer, const Json& more) const;
  std::string prompt(const Json& messages, bool answer = true) const;
};

/// Throws Error{usage} for a folder without a template, or with a template that cannot be read.
ChatFormat read_chat_format(const std::string& folder);

}  // namespace vfm::models
