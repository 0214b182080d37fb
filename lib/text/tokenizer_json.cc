// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "text/added_tokens.h"
#include "text/characters.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/subword_model.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace vfm::text {
namespace {

constexpr std::size_t kLongestText = std::size_t{16} << 20;
constexpr std::uint64_t kLargestId = 0x7fffffff;

struct Parsed {
  Json json;
  Vocabulary vocabulary;  ///< /model/vocab if it is an object.
};

/// Moves the vocabulary out of the Json, in which looking up one of 250,000 keys would be linear.
Parsed parse(std::string_view text, std::string_view what) {
  Parsed parsed{parse_json(text, what), {}};
  if (!parsed.json.is_object()) fail_usage("{} is not a JSON object", what);
  const auto model = parsed.json.find("model");
  if (model == parsed.json.end() || !model->is_object()) return parsed;
  const auto tokens = model->find("vocab");
  if (tokens == model->end() || !tokens->is_object()) return parsed;
  for (const auto& [token, id] : tokens->items()) {
    const bool fits = id.is_number_unsigned() && id.get<std::uint64_t>() <= kLargestId;
    if (!fits) fail_usage("{} has the token '{}' without an id", what, token);
    parsed.vocabulary[token] = id.get<std::int32_t>();
  }
  *tokens = Json::object();
  return parsed;
}

const Json& member(const Json& json, const char* name) {
  static const Json kNull;
  const auto found = json.find(name);
  return found == json.end() ? kNull : *found;
}

std::unique_ptr<SubwordModel> make_model(Parsed& parsed, std::string_view what) {
  const Json& model = member(parsed.json, "model");
  if (!model.is_object()) fail_usage("{} has no \"model\"", what);
  std::string type = get_string(model, "type").value_or("");
  // Files from before 2020 have no type.
  if (type.empty() && model.contains("merges")) type = "BPE";
  if (type == "Unigram") return make_unigram(model, what);
  if (type == "BPE") return make_bpe(model, std::move(parsed.vocabulary), what);
  if (type == "WordPiece") return make_word_piece(model, std::move(parsed.vocabulary), what);
  fail_usage("{} has a model of the type '{}'; Unigram, BPE and WordPiece are supported", what,
             type);
}

/// Special tokens around a text.
struct Scope {
  std::vector<std::int32_t> before, after;
};

std::int32_t id_of_pair(const Json& processor, const char* name, std::string_view what) {
  const Json& pair = member(processor, name);  // ["</s>", 2]
  if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number_integer())
    fail_usage("{} has a post-processor without '{}'", what, name);
  return pair[1].get<std::int32_t>();
}

/// {"single": [{"SpecialToken": {"id": "[CLS]"}}, {"Sequence": {"id": "A"}}, ...],
///  "special_tokens": {"[CLS]": {"ids": [101]}}}
Scope read_template(const Json& processor, std::string_view what) {
  Scope frame;
  bool text = false;
  for (const Json& part : member(processor, "single")) {
    if (part.contains("Sequence") && !text) {
      text = true;
      continue;
    }
    const std::string name = get_string(member(part, "SpecialToken"), "id").value_or("");
    const Json& ids = member(member(member(processor, "special_tokens"), name.c_str()), "ids");
    if (!ids.is_array() || part.contains("Sequence"))
      fail_usage("{} has a TemplateProcessing that is not supported: {}", what, dump_json(part));
    for (const Json& id : ids) {
      if (!id.is_number_integer()) fail_usage("{} has a special token that is not a number", what);
      (text ? frame.after : frame.before).push_back(id.get<std::int32_t>());
    }
  }
  if (!text) fail_usage("{} has a TemplateProcessing without the text", what);
  return frame;
}

Scope read_frame(const Json& processor, std::string_view what) {
  if (processor.is_null()) return {};
  const std::string type = get_string(processor, "type").value_or("");
  if (type == "TemplateProcessing") return read_template(processor, what);
  if (type == "ByteLevel") return {};  // Changes only offsets.
  if (type == "RobertaProcessing" || type == "BertProcessing")
    return {{id_of_pair(processor, "cls", what)}, {id_of_pair(processor, "sep", what)}};
  if (type == "Sequence") {
    Scope frame;
    for (const Json& part : member(processor, "processors")) {
      Scope outer = read_frame(part, what);
      outer.before.insert(outer.before.end(), frame.before.begin(), frame.before.end());
      frame.after.insert(frame.after.end(), outer.after.begin(), outer.after.end());
      frame.before = std::move(outer.before);
    }
    return frame;
  }
  fail_usage("{} has the post-processor '{}', which is not supported", what, type);
}

class JsonTokenizer : public Tokenizer {
 public:
  JsonTokenizer(Parsed parsed, std::string_view what)
      : normalizer_(make_normalizer(member(parsed.json, "normalizer"), what)),
        pre_tokenizer_(make_pre_tokenizer(member(parsed.json, "pre_tokenizer"), what)),
        model_(make_model(parsed, what)),
        frame_(read_frame(member(parsed.json, "post_processor"), what)),
        what_(what),
        decoder_(get_string(member(parsed.json, "decoder"), "type").value_or("")) {
    read_added_tokens(member(parsed.json, "added_tokens"), what);
  }

  std::vector<std::int32_t> encode(std::string_view utf8, std::size_t max_tokens) const override {
    std::vector<std::int32_t> ids = frame_.before;
    const std::size_t special = frame_.before.size() + frame_.after.size();
    encode_valid(utf8, ids);
    const std::size_t room = max_tokens > special ? max_tokens - special : 0;
    if (ids.size() > frame_.before.size() + room) ids.resize(frame_.before.size() + room);
    ids.insert(ids.end(), frame_.after.begin(), frame_.after.end());
    return ids;
  }

  std::vector<std::int32_t> encode_prompt(std::string_view utf8) const override {
    std::vector<std::int32_t> ids;
    encode_valid(utf8, ids);
    return ids;
  }

  std::shared_ptr<const TokenBytes> token_bytes() const override {
    if (decoder_ != "ByteLevel")
      fail_usage("{} has the decoder '{}'; ByteLevel alone is supported", what_, decoder_);
    auto table = std::make_shared<TokenBytes>();
    std::unordered_map<std::string_view, char> bytes;
    for (std::size_t i = 0; i < 256; ++i)
      bytes[byte_characters()[i]] = static_cast<char>(i);
    const auto add = [&](const std::string& token, std::int32_t id, bool special) {
      table->tokens[id] = {said_by(token, bytes), special};
    };
    for (const auto& [token, id] : model_->vocabulary())
      add(token, id, false);
    for (const Added& token : added_)
      add(token.content, token.id, token.special);
    return table;
  }

 private:
  struct Added {
    std::string content;
    std::int32_t id = 0;
    bool special = false;
  };

  /// Returns the bytes that the visible characters of a token stand for. Returns the token if it
  /// has other characters.
  static std::string said_by(const std::string& token,
                             const std::unordered_map<std::string_view, char>& bytes) {
    std::string said;
    for (std::size_t at = 0; at < token.size();) {
      const std::size_t begin = at;
      next_code_point(token, at);
      const auto found = bytes.find(std::string_view(token).substr(begin, at - begin));
      if (found == bytes.end()) return token;
      said += found->second;
    }
    return said;
  }

  void encode_valid(std::string_view utf8, std::vector<std::int32_t>& ids) const {
    if (utf8.size() > kLongestText) fail("a text of more than 16 MiB cannot be tokenized");
    encode_text(valid_utf8(utf8), ids);
  }

  void read_added_tokens(const Json& list, std::string_view what) {
    std::vector<AddedToken> raw, normalized;
    for (const Json& entry : list) {
      AddedToken token;
      token.content = need_string(entry, "content", what);
      if (token.content.empty()) continue;
      // If the model has the token too, the model's id counts.
      const auto known = find(model_->vocabulary(), token.content);
      token.id = known ? *known : static_cast<std::int32_t>(need_integer(entry, "id", what));
      added_.push_back({token.content, token.id, get_bool(entry, "special").value_or(false)});
      token.single_word = get_bool(entry, "single_word").value_or(false);
      token.lstrip = get_bool(entry, "lstrip").value_or(false);
      token.rstrip = get_bool(entry, "rstrip").value_or(false);
      if (!get_bool(entry, "normalized").value_or(true)) {
        raw.push_back(std::move(token));
        continue;
      }
      NormalPiece piece{token.content, true};
      if (normalizer_) normalizer_->apply(piece);
      token.content = piece.text;
      normalized.push_back(std::move(token));
    }
    raw_tokens_ = AddedTokens(std::move(raw));
    normalized_tokens_ = AddedTokens(std::move(normalized));
  }

  void encode_text(const std::string& text, std::vector<std::int32_t>& ids) const {
    for (const AddedTokens::Part& part : raw_tokens_.split(text)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
        continue;
      }
      NormalPiece piece{text.substr(part.begin, part.end - part.begin), part.begin == 0};
      if (normalizer_) normalizer_->apply(piece);
      for (const AddedTokens::Part& inner : normalized_tokens_.split(piece.text)) {
        if (inner.id >= 0) {
          ids.push_back(inner.id);
        } else {
          encode_piece({piece.text.substr(inner.begin, inner.end - inner.begin),
                        piece.at_start && inner.begin == 0},
                       ids);
        }
      }
    }
  }

  void encode_piece(NormalPiece piece, std::vector<std::int32_t>& ids) const {
    std::vector<NormalPiece> pieces{std::move(piece)};
    if (pre_tokenizer_) pieces = pre_tokenizer_->apply(std::move(pieces));
    for (const NormalPiece& cut : pieces)
      model_->encode(cut.text, ids);
  }

  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<SubwordModel> model_;
  Scope frame_;
  AddedTokens raw_tokens_, normalized_tokens_;
  std::string what_, decoder_;
  std::vector<Added> added_;
};

}  // namespace

std::optional<std::int32_t> find(const Vocabulary& vocabulary, std::string_view token) {
  const auto found = vocabulary.find(token);
  if (found == vocabulary.end()) return std::nullopt;
  return found->second;
}

bool append_bytes(const Vocabulary& vocabulary, std::string_view text,
                  std::vector<std::int32_t>& ids) {
  const std::size_t before = ids.size();
  for (const char byte : text) {
    const auto id = find(vocabulary, fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte)));
    if (!id) {
      ids.resize(before);
      return false;
    }
    ids.push_back(*id);
  }
  return true;
}

std::vector<std::int32_t> Tokenizer::encode_prompt(std::string_view) const {
  fail_usage(
      "a sentencepiece model has no special tokens in its texts; a tokenizer.json is needed");
}

std::shared_ptr<const TokenBytes> Tokenizer::token_bytes() const {
  fail_usage("a sentencepiece model is not decoded here; a tokenizer.json is needed");
}

std::unique_ptr<Tokenizer> make_json_tokenizer(std::string_view json, std::string_view what) {
  constexpr std::size_t kMost = std::size_t{64} << 20;  // The largest known files have 30 MB.
  if (json.size() > kMost)
    fail_usage("{} has {} bytes, and at most {} are read", what, json.size(), kMost);
  // Errors of member types are usage errors too, because the user chose the file.
  return as_usage([&] { return std::make_unique<JsonTokenizer>(parse(json, what), what); });
}

}  // namespace vfm::text
