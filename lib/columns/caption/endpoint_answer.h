// Parses answers, lists of models and error messages of a chat-completions server.
// Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace vfm::columns {

/// A shorter key is treated as a placeholder, such as "none" for a server without keys.
constexpr std::size_t kShortestKey = 8;

struct EndpointAnswer {
  std::string text;  ///< one line, without the model's thinking
  std::int64_t prompt_tokens = 0, completion_tokens = 0;  ///< from the server; 0: unknown
  bool cut = false;                                       ///< "finish_reason" is "length"
  std::string why_empty = {};                             ///< reason for an empty text, if known
};

/// Returns the text of choices[0].message, which is a string or a list of parts. A `secret` of
/// kShortestKey characters or more is replaced in the text. Throws Error if the body has no such
/// text (a second try may succeed).
EndpointAnswer read_answer(const std::string& body, const std::string& secret);

/// Returns the message in an error body, as ": words", shortened to one line: the text of {"error":
/// {"message": "..."}}, or else the whole body. `secret` is replaced.
std::string server_message(const std::string& body, const std::string& secret);

/// Returns the id of the only model in a list of models. Throws Error{usage} if the list has
/// several models, and Error if it has no model. `secret` is replaced in the messages.
std::string only_model(const std::string& body, const std::string& secret);

/// Removes <think>…</think>, which a reasoning model writes before its answer. If the prompt ends
/// with <think>, the text begins inside the thinking. A text cut before </think> has no answer.
std::string without_thinking(std::string text);

}  // namespace vfm::columns
