// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/sentence_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "models/encoder/bert.h"
#include "models/encoder/text_tower.h"

namespace vfm::models {
namespace {

/// The JSON object in a file, or an empty one where there is no file.
Json optional_json(const std::string& folder, const std::string& name) {
  const std::string path = io::join_path(folder, name);
  if (!io::file_exists(path)) return Json::object();
  Json json = parse_json(io::read_file(path, io::kMostModelJson), fmt::format("'{}'", path));
  if (!json.is_object()) fail_usage("'{}' is not a JSON object", path);
  return json;
}

/// A token of tokenizer_config.json: a string, or an object with its "content".
std::string token_of(const Json& config, const char* name) {
  const auto found = config.find(name);
  if (found == config.end() || found->is_null()) return {};
  return found->is_object() ? get_string(*found, "content").value_or("")
                            : get_string(config, name).value_or("");
}

/// The module of sentence-transformers that an entry of modules.json names: "Pooling".
std::string module_kind(const Json& entry, const std::string& where) {
  const std::string type = need_string(entry, "type", where);
  return type.substr(type.find_last_of('.') + 1);
}

/// A folder that modules.json names. It must lie in the model's own.
std::string module_folder(const std::string& folder, const Json& entry, const std::string& where) {
  const std::string path = get_string(entry, "path").value_or("");
  if (path.starts_with('/') || path.find("..") != std::string::npos)
    fail_usage("{}: the path '{}' leads out of the folder", where, path);
  return path.empty() ? folder : io::join_path(folder, path);
}

void read_pooling(const std::string& folder, SentenceRule& rule) {
  const Json config = read_config(folder, "config.json");
  const std::string where = fmt::format("'{}'", io::join_path(folder, "config.json"));
  std::vector<std::string> modes;
  if (const auto mode = config.find("pooling_mode"); mode != config.end() && mode->is_string())
    modes.push_back(mode->get<std::string>());
  for (const auto& [key, value] : config.items())
    if (key.starts_with("pooling_mode_") && value.is_boolean() && value.get<bool>()) {
      std::string mode = key.substr(std::string_view("pooling_mode_").size());
      if (mode.ends_with("_tokens")) mode.resize(mode.size() - std::string_view("_tokens").size());
      modes.push_back(mode == "cls_token" ? "cls" : mode);
    }
  if (modes.empty()) modes.push_back("mean");
  if (modes.size() > 1) fail_usage("{}: pooling in several ways at once is not supported", where);
  if (modes[0] != "mean" && modes[0] != "cls")
    fail_usage("{}: pooling '{}' is not supported: mean and cls are", where, modes[0]);
  rule.pooling = modes[0] == "cls" ? Pooling::cls : Pooling::mean;
  rule.pools_prompt = get_bool(config, "include_prompt").value_or(true);
  check_prompt(rule, rule.prompt, folder);
}

SentencePrompts read_prompts(const std::string& folder) {
  const char* file = "config_sentence_transformers.json";
  const Json config = optional_json(folder, file);
  const auto found = config.find("prompts");
  const Json all = found != config.end() && found->is_object() ? *found : Json::object();
  const auto text = [&](const char* name) { return get_string(all, name).value_or(""); };
  const std::string name = get_string(config, "default_prompt_name").value_or("");
  if (!name.empty() && !get_string(all, name.c_str()))
    fail_usage("'{}' names a prompt '{}' and does not have it", io::join_path(folder, file), name);
  SentencePrompts prompts{name.empty() ? "" : text(name.c_str()), text("query"), {}};
  bool default_of_documents = false;
  for (const char* kind : {"document", "passage", "corpus"}) {
    if (prompts.document.empty()) prompts.document = text(kind);
    default_of_documents = default_of_documents || name == kind;
  }
  if (prompts.query.empty() && !default_of_documents) prompts.query = prompts.any;
  if (prompts.document.empty() && name != "query") prompts.document = prompts.any;
  return prompts;
}

/// modules.json: returns the folder with the model.
std::string read_modules(const std::string& folder, SentenceFolder& out) {
  SentenceRule& rule = out.rule;
  const std::string path = io::join_path(folder, "modules.json");
  const std::string where = fmt::format("'{}'", path);
  const Json modules = parse_json(io::read_file(path, io::kMostModelJson), where);
  if (!modules.is_array() || modules.size() < 2) fail_usage("{} is not a list of modules", where);
  out.prompts = read_prompts(folder);
  rule.prompt = out.prompts.any;
  rule.normalised = false;
  std::string model;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const std::string kind = module_kind(modules[i], where);
    const std::string there = module_folder(folder, modules[i], where);
    if (i == 0 && kind == "Transformer") {
      model = there;
    } else if (i == 1 && kind == "Pooling") {
      read_pooling(there, rule);
    } else if (i == 2 && kind == "Normalize") {
      rule.normalised = true;
    } else {
      fail_usage(
          "{}: module {} is '{}'; what works here is Transformer, Pooling, and Normalize or not{}",
          where, i, kind, kind == "CLIPModel" ? "; name the folder " + there + " instead" : "");
    }
  }
  return model;
}

/// max_seq_length and do_lower_case of sentence-transformers.
void read_sentence_config(const std::string& model, SentenceRule& rule) {
  for (const char* name : {"sentence_bert_config.json", "sentence_roberta_config.json",
                           "sentence_xlm-roberta_config.json"}) {
    if (!io::file_exists(io::join_path(model, name))) continue;
    const Json config = optional_json(model, name);
    if (get_integer(config, "max_seq_length"))
      rule.most_tokens = std::min(rule.most_tokens, positive_field(config, "max_seq_length", 1,
                                                                   io::join_path(model, name)));
    rule.lower_case = get_bool(config, "do_lower_case").value_or(false);
    return;
  }
}

std::string json_tokenizer_file(const std::string& folder) {
  if (std::string path = io::join_path(folder, "tokenizer.json"); io::file_exists(path))
    return path;
  fail_usage(
      "'{}' has no tokenizer.json; transformers writes one: "
      "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)",
      folder);
}

/// The number of the token that SigLIP's texts are padded with.
std::int32_t padding_of(const std::string& folder, const std::string& token, const Json& config,
                        const std::string& file, const text::Tokenizer& tokenizer) {
  if (file.ends_with(".model")) {
    // sentencepiece's end is "</s>", which these models pad with.
    if (token == "</s>") return tokenizer.encode("", 1).back();
    fail_usage("'{}': padding with '{}' is not supported: with '</s>' it is", folder, token);
  }
  if (const auto decoder = config.find("added_tokens_decoder");
      decoder != config.end() && decoder->is_object())
    for (const auto& [number, entry] : decoder->items())
      if (entry.is_object() && get_string(entry, "content") == token && number.size() < 9 &&
          number.find_first_not_of("0123456789") == std::string::npos)
        return std::stoi(number);
  const Json whole = parse_json(io::read_file(file, io::kMostModelJson), fmt::format("'{}'", file));
  if (whole.is_object() && whole.contains("added_tokens") && whole["added_tokens"].is_array())
    for (const Json& entry : whole["added_tokens"])
      if (entry.is_object() && get_string(entry, "content") == token)
        return static_cast<std::int32_t>(need_integer(entry, "id", file));
  fail_usage("'{}' has no token '{}', which its tokenizer_config.json names for padding", file,
             token);
}

/// SigLIP's tokenizer, and what becomes of a text before it.
void open_siglip_tokenizer(const std::string& folder, const Json& config, SentenceFolder& out) {
  const std::string spiece = io::join_path(folder, "spiece.model");
  const std::string type = get_string(config, "tokenizer_class").value_or("");
  const bool first = type.starts_with("SiglipTokenizer");  // not SigLIP 2, with Gemma's
  const bool by_pieces = io::file_exists(spiece) &&
                         (first || !io::file_exists(io::join_path(folder, "tokenizer.json")));
  out.tokenizer_file = by_pieces ? spiece : json_tokenizer_file(folder);
  const io::MappedFile file(out.tokenizer_file);
  const std::string what = fmt::format("'{}'", out.tokenizer_file);
  out.tokenizer = by_pieces ? text::make_sentencepiece_tokenizer(file.text(), 0, what)
                            : text::make_json_tokenizer(file.text(), what);
  SentenceRule& rule = out.rule;
  rule.canonical = first || by_pieces;
  rule.lower_case = get_bool(config, "do_lower_case").value_or(true);
  rule.padded_to = rule.most_tokens;
  const std::string side =
      get_string(config, "padding_side").value_or(type == "Siglip2Tokenizer" ? "left" : "right");
  if (side != "right" && side != "left") fail_usage("{}: padding_side '{}'", what, side);
  rule.pad_left = side == "left";
  std::string token = token_of(config, "pad_token");
  if (token.empty() && rule.canonical) token = "</s>";
  if (token.empty()) fail_usage("'{}': tokenizer_config.json names no pad_token", folder);
  rule.padding = padding_of(folder, token, config, out.tokenizer_file, *out.tokenizer);
}

void open_tower(const std::string& folder, SentenceFolder& out) {
  const HfComponent& component = *out.component;
  const auto config = TextTowerConfig::from_json(component.config(), component.type(),
                                                 fmt::format("'{}'", component.config_path()));
  out.rule.pooling = Pooling::own;
  out.rule.most_tokens = config.positions;
  if (config.siglip) {
    open_siglip_tokenizer(folder, optional_json(folder, "tokenizer_config.json"), out);
  } else {
    out.tokenizer_file = json_tokenizer_file(folder);
  }
}

void open_bert(const std::string& model, bool with_modules, SentenceFolder& out) {
  const HfComponent& component = *out.component;
  const auto config = BertConfig::from_json(component.config(), component.type(),
                                            fmt::format("'{}'", component.config_path()));
  out.rule.most_tokens = config.most_tokens();
  // A number of 30 digits means that there is no limit.
  const double most = get_number(optional_json(model, "tokenizer_config.json"), "model_max_length")
                          .value_or(out.rule.most_tokens);
  if (most >= 1 && most < out.rule.most_tokens) out.rule.most_tokens = static_cast<int>(most);
  if (with_modules) read_sentence_config(model, out.rule);
  out.tokenizer_file = json_tokenizer_file(model);
}

}  // namespace

void check_prompt(const SentenceRule& rule, const std::string& prompt, const std::string& folder) {
  if (!rule.pools_prompt && !prompt.empty())
    fail_usage("'{}': pooling without the prompt is not supported", folder);
}

std::string SentenceRule::words() const {
  std::string words = pooling == Pooling::mean  ? "mean"
                      : pooling == Pooling::cls ? "cls"
                      : padded_to > 0           ? fmt::format("last of {}", padded_to)
                                                : "end of text";
  if (!prompt.empty()) words += ", prompt";
  if (normalised) words += ", normalised";
  return words;
}

Json SentenceRule::to_json() const {
  return {{"pooling", words()}, {"lower_case", lower_case},   {"canonical", canonical},
          {"prompt", prompt},   {"most_tokens", most_tokens}, {"pad_left", pad_left},
          {"padding", padding}};
}

bool is_text_tower(std::string_view type) {
  return type.starts_with("clip") || type.starts_with("siglip");
}

bool is_sentence_folder(const std::string& folder) {
  if (io::file_exists(io::join_path(folder, "modules.json"))) return true;
  try {
    const Json config = optional_json(folder, "config.json");
    const std::string type = get_string(config, "model_type").value_or("");
    return std::ranges::find(kSentenceTypes, type) != kSentenceTypes.end();
  } catch (const Error&) {
    return false;  // whoever opens it says why
  }
}

SentenceFolder open_sentence_folder(const std::string& folder, bool hashed) {
  return as_usage([&] {
    SentenceFolder out;
    const bool modules = io::file_exists(io::join_path(folder, "modules.json"));
    const std::string model = modules ? read_modules(folder, out) : folder;
    out.component = std::make_unique<HfComponent>(model);
    std::vector<std::string_view> known(kSentenceTypes.begin(), kSentenceTypes.end());
    if (modules) std::erase_if(known, is_text_tower);
    out.component->need_type(known);
    if (is_text_tower(out.component->type()))
      open_tower(model, out);
    else
      open_bert(model, modules, out);
    if (!out.tokenizer) {
      const io::MappedFile file(out.tokenizer_file);
      out.tokenizer =
          text::make_json_tokenizer(file.text(), fmt::format("'{}'", out.tokenizer_file));
    }
    if (hashed)
      out.hash = hash_hex(out.component->hash() + io::hash_file(out.tokenizer_file) +
                          dump_json(out.rule.to_json()));
    return out;
  });
}

}  // namespace vfm::models
