// The words of a model that chats: prompts to tokens, by its chat template and its tokenizer.json,
// and tokens to text.
//
// Template: models/folder/chat_format.h. Tokens that end an answer are "eos_token_id" of
// generation_config.json.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::models {

/// A message without pictures.
struct ChatTurn {
  std::string_view role;  ///< "system", "user" or "assistant"
  std::string_view text;
};

class ChatWords {
 public:
  /// `sees`: of a model to which pictures are shown. Throws Error{usage}: a file is missing, or not
  /// supported.
  explicit ChatWords(const std::string& folder, bool sees = true);
  ~ChatWords();

  /// Of a user's message: a video, or a still picture, and after it the text; up to where the
  /// answer begins. Throws Error{usage}, also what the template refuses.
  std::vector<std::int32_t> prompt(std::string_view text, bool still) const;
  /// The text itself of a user's message that begins with `sights`, each "image" or "video".
  std::string chat(std::string_view text, std::span<const std::string_view> sights) const;
  /// Of a user's message that is the text alone, where nothing is seen.
  std::vector<std::int32_t> prompt_alone(std::string_view text) const;
  /// Of a conversation, up to where the next answer begins; messages are texts, as templates of
  /// models that see nothing take them. Throws Error{usage}, also where the template leaves out
  /// what a turn says; Error for a text that has a special token, which could end its message.
  std::vector<std::int32_t> conversation(std::span<const ChatTurn> turns) const;
  /// Of a text that is an answer, or its begin.
  std::vector<std::int32_t> tokens(std::string_view text) const;
  /// Without special tokens.
  std::string text(std::span<const std::int32_t> ids) const;
  /// Empty, where the folder does not say.
  const std::vector<std::int32_t>& ends() const;
  /// Changes with what the template writes around a message, the tokenizer and the ends.
  const std::string& hash() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace vfm::models
