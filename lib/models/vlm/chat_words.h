// Text of a chat model: converts prompts to tokens, with its chat template and tokenizer.json, and
// tokens to text.
//
// Template: models/folder/chat_format.h. The tokens that end an answer are "eos_token_id" in
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
  /// `sees`: the model takes pictures. Throws Error{usage} if a file is missing or not supported.
  explicit ChatWords(const std::string& folder, bool sees = true);
  ~ChatWords();

  /// Tokens of a user's message with a video, or a still picture, and then the text, up to where
  /// the answer begins. Throws Error{usage}, also for what the template refuses.
  std::vector<std::int32_t> prompt(std::string_view text, bool still) const;
  /// Text of a user's message that begins with `sights`, each "image" or "video".
  std::string chat(std::string_view text, std::span<const std::string_view> sights) const;
  /// Tokens of a user's message with only the text, without pictures.
  std::vector<std::int32_t> prompt_alone(std::string_view text) const;
  /// Tokens of a conversation, up to where the next answer begins. Messages are plain strings, as
  /// templates of models without vision take them. Throws Error{usage}, also if the template leaves
  /// out the text of a turn; Error for a text with a special token, which could end its message.
  std::vector<std::int32_t> conversation(std::span<const ChatTurn> turns) const;
  /// Tokens of an answer, or of the beginning of one.
  std::vector<std::int32_t> tokens(std::string_view text) const;
  /// The text of tokens, without special tokens.
  std::string text(std::span<const std::int32_t> ids) const;
  /// Tokens that end an answer; empty if the folder has none.
  const std::vector<std::int32_t>& ends() const;
  /// A hash of what the template writes around a message, of the tokenizer and of ends().
  const std::string& hash() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace vfm::models
