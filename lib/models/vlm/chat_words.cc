// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/chat_words.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "models/folder/chat_format.h"
#include "models/folder/hf_folder.h"
#include "models/vlm/qwen_config.h"
#include "text/decoding.h"
#include "text/tokenizer.h"

namespace vfm::models {
namespace {

std::string read_tokenizer(const std::string& path) {
  if (!io::file_exists(path)) fail_usage("there is no '{}'", path);
  return io::read_file(path, io::kMostModelJson);
}

std::vector<std::int32_t> end_tokens(const std::string& folder) {
  const char* name = "generation_config.json";
  const std::string path = io::join_path(folder, name);
  if (!io::file_exists(path)) return {};
  const Json config = read_config(folder, name);
  const auto found = config.find("eos_token_id");
  if (found == config.end() || found->is_null()) return {};
  return token_ids(*found, fmt::format("'{}'", path));
}

/// A user's message: what is seen, each "image" or "video", and the text.
std::string chat_text(const ChatFormat& format, std::string_view text,
                      std::span<const std::string_view> sights) {
  Json content = Json::array(), message = Json::object();
  for (const std::string_view sight : sights)
    content.push_back({{"type", sight}});
  content.push_back({{"type", "text"}, {"text", text}});
  message["role"] = "user";
  message["content"] = content;
  Json messages = Json::array();
  messages.push_back(message);
  return format.prompt(messages);
}

std::string chat_text(const ChatFormat& format, std::string_view text, std::string_view sight) {
  return chat_text(format, text, std::span(&sight, 1));
}

std::string conversation_text(const ChatFormat& format, std::span<const ChatTurn> turns) {
  Json messages = Json::array();
  for (const ChatTurn& turn : turns) {
    Json message = Json::object();
    message["role"] = turn.role;
    message["content"] = turn.text;
    messages.push_back(std::move(message));
  }
  return format.prompt(messages);
}

}  // namespace

struct ChatWords::State {
  std::string folder;
  ChatFormat format;
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::shared_ptr<const text::TokenBytes> pieces;
  std::vector<std::int32_t> ends;
  std::string hash;

  State(const std::string& folder_in, const std::string& path, const std::string& bytes, bool sees)
      : folder(folder_in),
        format(read_chat_format(folder)),
        tokenizer(text::make_json_tokenizer(bytes, fmt::format("'{}'", path))),
        pieces(tokenizer->token_bytes()),
        ends(end_tokens(folder)) {
    Hasher hasher;
    hasher.update(bytes).update(dump_json(Json(ends)));
    if (!sees) {
      const ChatTurn turns[] = {{"system", "?"}, {"user", "!"}};
      hasher.update(conversation_text(format, turns));
      hash = hasher.hex128();
      return;
    }
    for (const char* sight : {"video", "image"})
      hasher.update(chat_text(format, "?", sight)).update(std::string_view("\0", 1));
    hash = hasher.hex128();
  }
};

ChatWords::ChatWords(const std::string& folder, bool sees)
    : state_(as_usage([&] {
        const std::string path = io::join_path(folder, "tokenizer.json");
        return std::make_unique<State>(folder, path, read_tokenizer(path), sees);
      })) {}

ChatWords::~ChatWords() = default;

std::vector<std::int32_t> ChatWords::prompt(std::string_view text, bool still) const {
  return state_->tokenizer->encode_prompt(
      chat_text(state_->format, text, still ? "image" : "video"));
}

std::string ChatWords::chat(std::string_view text, std::span<const std::string_view> sights) const {
  return chat_text(state_->format, text, sights);
}

std::vector<std::int32_t> ChatWords::prompt_alone(std::string_view text) const {
  return state_->tokenizer->encode_prompt(chat(text, {}));
}

std::vector<std::int32_t> ChatWords::conversation(std::span<const ChatTurn> turns) const {
  for (const ChatTurn& turn : turns)
    for (const std::int32_t id : tokens(turn.text))
      if (const auto piece = state_->pieces->tokens.find(id);
          piece != state_->pieces->tokens.end() && piece->second.special)
        fail("the text has '{}', which is a mark of the model's chat", piece->second.bytes);
  const std::string text = conversation_text(state_->format, turns);
  for (const ChatTurn& turn : turns)
    if (text.find(turn.text) == text.npos)
      fail_usage("the chat template of '{}' does not write down what the {} says", state_->folder,
                 turn.role);
  return state_->tokenizer->encode_prompt(text);
}

std::vector<std::int32_t> ChatWords::tokens(std::string_view text) const {
  return state_->tokenizer->encode_prompt(text);
}

std::string ChatWords::text(std::span<const std::int32_t> ids) const {
  return text::decode(state_->pieces, ids);
}

const std::vector<std::int32_t>& ChatWords::ends() const {
  return state_->ends;
}

const std::string& ChatWords::hash() const {
  return state_->hash;
}

}  // namespace vfm::models
