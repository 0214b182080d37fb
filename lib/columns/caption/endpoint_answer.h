// Parses answers, lists of models and error messages of a chat-completions server. Thread-safety:
// pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace vfm::columns {

/// Length of the shortest secret that is masked in texts. A shorter secret is a placeholder, such
/// as "none".
constexpr std::size_t kShortestKey = 8;

struct EndpointAnswer {
  std::string text;  ///< A line of text without the model's thinking.
  std::int64_t prompt_tokens = 0, completion_tokens = 0;  ///< Counted by the server; 0 if unknown.
  bool cut = false;            ///< Whether the answer was cut ("finish_reason" is "length").
  std::string why_empty = {};  ///< Reason for an empty text, or "" if unknown.
};

/// Returns the text of choices[0].message, which is a string or a list of parts. A `secret` of at
/// least kShortestKey characters is masked. If the body has no text, throws Error, and a second
/// request may succeed.
EndpointAnswer read_answer(const std::string& body, const std::string& secret);

/// Returns ": " and the message in an error body, shortened to one line. The message is the text in
/// {"error": {"message": "..."}}, or else the whole body. `secret` is masked.
std::string server_message(const std::string& body, const std::string& secret);

/// Returns the id of the only model in a list of models. Throws Error{usage} for several models,
/// and Error for an empty list. The messages mask `secret`.
std::string only_model(const std::string& body, const std::string& secret);

/// Removes the thinking that a reasoning model writes before its answer, <think>…</think>. If the
/// prompt ends with <think>, the text begins inside the thinking. If </think> is missing, all text
/// after <think> is removed.
std::string without_thinking(std::string text);

}  // namespace vfm::columns
