// SPDX-License-Identifier: Apache-2.0
#include "models/folder/chat_format.h"

#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"

namespace vfm::models {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{32} << 20;
constexpr const char* kNamedTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};

/// Nothing if there is no such file.
std::optional<std::string> small_file(const std::string& folder, const char* name) {
  const std::string path = io::join_path(folder, name);
  if (!io::file_exists(path)) return std::nullopt;
  return as_usage([&] { return io::read_file(path, kLargestFile); });
}

Json object_file(const std::string& folder, const char* name) {
  const auto text = small_file(folder, name);
  if (!text) return Json::object();
  const std::string what = fmt::format("'{}'", io::join_path(folder, name));
  Json json = parse_json(*text, what);
  if (!json.is_object()) fail_usage("{} is not a JSON object", what);
  return json;
}

/// A template in a member of a file: a text, or one of a list with names.
std::optional<std::string> template_in(const Json& config) {
  const auto found = config.find("chat_template");
  if (found == config.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) return std::nullopt;
  for (const Json& one : *found)
    if (one.is_object() && get_string(one, "name").value_or("") == "default")
      return get_string(one, "template");
  return std::nullopt;
}

/// A token is a text, or an object with its "content".
void add_token(Json& tokens, const std::string& name, const Json& value) {
  if (tokens.contains(name)) return;
  if (value.is_string())
    tokens[name] = value;
  else if (value.is_object() && get_string(value, "content"))
    tokens[name] = value["content"];
}

Json special_tokens_of(const std::string& folder) {
  Json tokens = Json::object();
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const Json config = object_file(folder, file);
    for (const char* name : kNamedTokens)
      if (config.contains(name)) add_token(tokens, name, config[name]);
    const auto extra = config.find("extra_special_tokens");
    if (extra == config.end() || !extra->is_object()) continue;
    for (const auto& [name, value] : extra->items())
      add_token(tokens, name, value);
  }
  return tokens;
}

}  // namespace

std::string ChatFormat::prompt(const Json& messages, bool answer, const Json& more) const {
  Json variables = special_tokens;
  variables["messages"] = messages;
  variables["add_generation_prompt"] = answer;
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  variables.update(more);
  return chat.render(variables);
}

std::string ChatFormat::prompt(const Json& messages, bool answer) const {
  return prompt(messages, answer, Json::object());
}

ChatFormat read_chat_format(const std::string& folder) {
  return as_usage([&]() -> ChatFormat {
    const auto made = [&](const std::string& source, const char* file) -> ChatFormat {
      const std::string path = io::join_path(folder, file);
      return {text::ChatTemplate(source, fmt::format("the chat template of '{}'", path)),
              special_tokens_of(folder), path};
    };
    for (const char* file : {"processor_config.json", "chat_template.json"})
      if (const auto found = template_in(object_file(folder, file))) return made(*found, file);
    if (const auto found = small_file(folder, "chat_template.jinja"))
      return made(*found, "chat_template.jinja");
    if (const auto found = template_in(object_file(folder, "tokenizer_config.json")))
      return made(*found, "tokenizer_config.json");
    fail_usage(
        "'{}' has no chat template: none in processor_config.json, chat_template.json, "
        "chat_template.jinja or tokenizer_config.json",
        folder);
  });
}

}  // namespace vfm::models
