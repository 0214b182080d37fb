// The answers, lists of models and error messages of a chat-completions server.
// Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace vfm::columns {

/// Shorter keys are not secret: a server without keys gets some word ("none"), which captions may
/// have.
constexpr std::size_t kShortestKey = 8;

struct EndpointAnswer {
  std::string text;  ///< one line, without the model's thinking
  std::int64_t prompt_tokens = 0, completion_tokens = 0;  ///< as the server counts, or 0
  bool cut = false;                                       ///< "finish_reason" is "length"
  std::string why_empty = {};                             ///< why the text is empty, if known
};

/// The text of choices[0].message, which is a string or a list of parts. Throws Error if the body
/// has another form; another try may do better. A `secret` of kShortestKey characters or more is
/// replaced in it.
EndpointAnswer read_answer(const std::string& body, const std::string& secret);

/// The server's message in an error body, as ": words", short and on one line:
/// {"error": {"message": "..."}}, or all of it. `secret` is replaced in it.
std::string server_message(const std::string& body, const std::string& secret);

/// The id of the only model in the body of a list of models. Throws Error{usage} if it lists
/// several, Error if none. `secret` is replaced in messages.
std::string only_model(const std::string& body, const std::string& secret);

/// A text without its <think>…</think>, which a reasoning model writes before its answer. Some
/// models have the first mark in the prompt, so the text begins inside; a text cut there has no
/// second mark, and no answer.
std::string without_thinking(std::string text);

}  // namespace vfm::columns
