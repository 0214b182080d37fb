// How a model's folder wants a conversation written: its chat template, and the special tokens
// that templates name.
//
// The template is looked for where transformers looks, and the first one counts:
//   processor_config.json   "chat_template"
//   chat_template.json      "chat_template"
//   chat_template.jinja     the file itself
//   tokenizer_config.json   "chat_template": a text, or a list of which "default" is taken
// Special tokens are those of tokenizer_config.json, and of special_tokens_map.json what that
// lacks. Source: transformers 5.24, processing_utils.py and tokenization_utils_base.py.
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
  std::string file;                              ///< where the template stands

  /// The text for `messages` ([{"role": "user", "content": ...}, ...]), and for an answer to them
  /// if `answer`. `more`: other variables that the template may ask for. Throws Error{usage}.
  std::string prompt(const Json& messages, bool answer, const Json& more) const;
  std::string prompt(const Json& messages, bool answer = true) const;
};

/// Throws Error{usage} for a folder without a template, or with one that cannot be read.
ChatFormat read_chat_format(const std::string& folder);

}  // namespace vfm::models
