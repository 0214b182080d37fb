// What a server of chat completions answers, and what it says where that is no answer.
// Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace vfm::columns {

/// Shorter keys are no secret, but what a server without keys is given ("none"): words of captions.
constexpr std::size_t kShortestKey = 8;

struct EndpointAnswer {
  std::string text;  ///< one line, without what the model thought before
  std::int64_t prompt_tokens = 0, completion_tokens = 0;  ///< as the server counts, or 0
  bool cut = false;            ///< it did not end by itself: "finish_reason" is "length"
  std::string why_empty = {};  ///< where the text is empty, and that is known
};

/// The text of choices[0].message, which is a string or a list of parts. Throws Error if the body
/// is not of that form: another try may have a better one. `secret` is replaced in it, if it has
/// kShortestKey characters or more.
EndpointAnswer read_answer(const std::string& body, const std::string& secret);

/// What a server says in a body that is no answer, as ": words", short and on one line:
/// {"error": {"message": "..."}}, or all of it. `secret` is replaced in it.
std::string server_message(const std::string& body, const std::string& secret);

/// A text without its <think>…</think>: what a model that reasons writes before it answers. Some
/// have the first mark in their prompt, so their text begins inside; one that was cut there has no
/// second mark, and no answer.
std::string without_thinking(std::string text);

}  // namespace vfm::columns
