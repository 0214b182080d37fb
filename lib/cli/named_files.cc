// SPDX-License-Identifier: Apache-2.0
#include "cli/named_files.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/error.h"
#include "base/utf8.h"
#include "io/wrong_address.h"

namespace vfm::cli {
namespace {

/// Returns the word for a value in --help. A positional without such a word is known by its name.
std::string word_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (option.get_positional() && type == "TEXT") return option.get_name();
  return type;
}

/// CLI11 appends checks to the word.
bool is_word(std::string_view word, std::string_view name) {
  return word.starts_with(name) && (word.size() == name.size() || word[name.size()] == ':');
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return is_word(word, name); });
}

/// A SOURCE can be model:DIR.
bool names_output_or_model(std::string_view word) {
  return word.find("DIR") != std::string_view::npos || word.starts_with("FILE") ||
         word.starts_with("PATH") || word.starts_with("RUN") || word.starts_with("SOURCE");
}

bool is_whole_name(std::string_view word) {
  return is_one_of(word, {"DIR", "FILE", "PATH", "RUN"}) || word.starts_with("FILE.");
}

/// Returns the file in "@FILE" or "NAME=@FILE", or "".
std::string_view after_at(std::string_view value) {
  const std::size_t sign = value.find('=');
  if (!value.starts_with('@') && sign != std::string_view::npos) value.remove_prefix(sign + 1);
  return value.starts_with('@') ? value.substr(1) : std::string_view();
}

/// Returns the first address in a value such as "model:s3://a", or "".
std::string_view address_in(std::string_view value) {
  const std::size_t colon = value.find("://");
  if (colon == std::string_view::npos) return {};
  const std::size_t before = value.substr(0, colon).find_last_of(":=,");
  const std::string_view rest = value.substr(before == std::string_view::npos ? 0 : before + 1);
  return url_scheme(rest).empty() ? std::string_view() : rest;
}

void check_addresses(const CLI::App& app, const CLI::Option& option) {
  const std::string word = word_of(option);
  if (is_one_of(word, {"TEXT", "PROMPT", "EXPRESSION", "NAME", "URL", "URL|FILE.json"})) return;
  const bool at = word.find("|@FILE") != std::string::npos;
  const bool video = word == "VIDEO";
  std::vector<std::string> protocols;
  if (const CLI::Option* allowed = app.get_option_no_throw("--protocols"); video && allowed)
    protocols = allowed->results();
  for (const std::string& value : option.results()) {
    const std::string_view name = at ? after_at(value) : address_in(value);
    std::string refused = video ? no_video_message(name, protocols) : no_file_message(name);
    if (refused.empty()) refused = io::wrong_address(std::string(name));
    // Not for a SOURCE, in which model:/models/a names a folder.
    if (refused.empty() && is_whole_name(word)) refused = no_file_message(value);
    if (!refused.empty()) fail_usage("{}: {}", option.get_name(), refused);
  }
}

}  // namespace

void check_named_files(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    check_addresses(app, *option);
    if (!names_output_or_model(option->get_type_name())) continue;
    for (const std::string& name : option->results())
      if (!is_utf8(name)) fail_usage("{}: {}", option->get_name(), no_utf8_message(name));
  }
}

}  // namespace vfm::cli
