// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/endpoint_answer.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/mend_json.h"
#include "text/unicode.h"

namespace vfm::columns {
namespace {

constexpr std::size_t kMessage = 300;  ///< characters of a server's error message
constexpr std::string_view kThink = "<think>", kThought = "</think>";

std::string without(std::string text, const std::string& secret) {
  if (secret.empty()) return text;
  for (std::size_t at = 0; (at = text.find(secret, at)) != text.npos;)
    text.replace(at, secret.size(), "[key]");
  return text;
}

/// Returns ": " and the words in one line. Masks the secret, which must not be escaped in `words`.
std::string told(std::string words, const std::string& secret) {
  words = without(std::move(words), secret).substr(0, 4 * kMessage);
  words = text::first_characters(text::clean_line(text::valid_utf8(words)), kMessage);
  return words.empty() ? words : ": " + words;
}

std::int64_t count_in(const Json& usage, const char* name) {
  const auto found = usage.find(name);
  const bool fits = found != usage.end() && found->is_number_unsigned();
  return fits ? static_cast<std::int64_t>(
                    std::min<std::uint64_t>(found->get<std::uint64_t>(), std::uint64_t{1} << 40))
              : 0;
}

/// Throws Error if the answer has no choices[0] with a message.
const Json& first_choice(const Json& json) {
  const auto choices = json.is_object() ? json.find("choices") : json.end();
  if (!json.is_object() || choices == json.end() || !choices->is_array() || choices->empty() ||
      !(*choices)[0].is_object() || !(*choices)[0].contains("message") ||
      !(*choices)[0]["message"].is_object())
    fail("the answer has no choices[0].message");
  return (*choices)[0];
}

std::string content_of(const Json& message) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return {};
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) fail("the answer's content is not text");
  std::string text;
  for (const Json& part : *content)
    if (part.is_object() && part.contains("text") && part["text"].is_string())
      text += part["text"].get<std::string>();
  return text;
}

/// Returns why a choice has no text: the model's refusal, the token limit, or a filter.
std::string why_empty(const Json& choice, const EndpointAnswer& answer, bool thought,
                      const std::string& secret) {
  const auto refusal = choice["message"].find("refusal");
  if (refusal != choice["message"].end() && refusal->is_string())
    return told(refusal->get<std::string>(), secret);
  if (answer.cut && thought)
    return fmt::format(
        ": all of its {} tokens are thoughts; allow more by \"tokens\", vfm-endpoint(5)",
        answer.completion_tokens);
  const Json reason = choice.value("finish_reason", Json());
  if (!reason.is_string() || reason == "stop") return {};
  return told(fmt::format("finish_reason is {}", reason.get<std::string>()), secret);
}

}  // namespace

std::string server_message(const std::string& body, const std::string& secret) {
  std::string said = body;
  // The secret is masked in parsed text, where JSON has no escapes, and before the text is cut.
  try {
    const Json json = parse_json(text::mend_json(body), "the answer");
    const Json* found = json.is_object() && json.contains("error") ? &json["error"] : &json;
    if (found->is_object() && found->contains("message")) found = &(*found)["message"];
    said = found->is_string() ? found->get<std::string>() : dump_json(*found);
  } catch (const Error&) {
    if (!secret.empty() && body.find('\\') != body.npos) return {};
  }
  return told(std::move(said), secret);
}

std::string only_model(const std::string& body, const std::string& secret) {
  const Json json = parse_json(text::mend_json(body), "the list of models");
  std::vector<std::string> names;
  const Json* const list = json.is_object() && json.contains("data") ? &json["data"] : nullptr;
  if (list && list->is_array())
    for (const Json& model : *list)
      if (model.is_object() && model.contains("id") && model["id"].is_string())
        names.push_back(model["id"].get<std::string>());
  if (names.size() == 1) return names.front();
  if (names.empty()) fail("the server lists no model; name it in a JSON file, vfm-endpoint(5)");
  std::string words;
  for (const std::string& name : names)
    words += (words.empty() ? "" : ", ") + name;
  fail_usage("the server has {} models; name one in a JSON file, vfm-endpoint(5){}", names.size(),
             told(words, secret));
}

std::string without_thinking(std::string text) {
  if (const std::size_t end = text.find(kThought); end < text.find(kThink))
    text.erase(0, end + kThought.size());
  for (std::size_t at = 0; (at = text.find(kThink, at)) != text.npos;) {
    const std::size_t end = text.find(kThought, at);
    text.erase(at, end == text.npos ? end : end + kThought.size() - at);
  }
  return text;
}

EndpointAnswer read_answer(const std::string& body, const std::string& secret) {
  const Json json = parse_json(text::mend_json(body), "the answer");
  const Json& choice = first_choice(json);
  std::string said = content_of(choice["message"]);
  const std::size_t length = said.size();
  EndpointAnswer answer{.text = without_thinking(std::move(said)),
                        .cut = choice.value("finish_reason", Json()) == "length"};
  const bool thought = answer.text.size() < length;
  if (json.contains("usage") && json["usage"].is_object()) {
    answer.prompt_tokens = count_in(json["usage"], "prompt_tokens");
    answer.completion_tokens = count_in(json["usage"], "completion_tokens");
  }
  if (secret.size() >= kShortestKey) answer.text = without(std::move(answer.text), secret);
  answer.text = text::clean_line(answer.text);
  if (answer.text.empty()) answer.why_empty = why_empty(choice, answer, thought, secret);
  return answer;
}

}  // namespace vfm::columns
