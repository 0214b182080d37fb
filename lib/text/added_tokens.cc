// SPDX-License-Identifier: Apache-2.0
#include "text/added_tokens.h"

#include <algorithm>

#include "text/characters.h"

namespace vfm::text {
namespace {

bool word_before(std::string_view text, std::size_t at) {
  if (at == 0) return false;
  at = previous_boundary(text, at);
  return is_word(next_code_point(text, at));
}

bool word_after(std::string_view text, std::size_t at) {
  return at < text.size() && is_word(next_code_point(text, at));
}

std::size_t spaces_before(std::string_view text, std::size_t at) {
  while (at > 0) {
    const std::size_t before = previous_boundary(text, at);
    std::size_t end = before;
    if (!is_space(next_code_point(text, end))) break;
    at = before;
  }
  return at;
}

std::size_t spaces_after(std::string_view text, std::size_t at) {
  for (std::size_t next = at; next < text.size() && is_space(next_code_point(text, next));)
    at = next;
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::vector<std::pair<std::string, std::int32_t>> entries;
  for (const AddedToken& token : tokens_)
    entries.emplace_back(token.content, static_cast<std::int32_t>(entries.size()));
  table_ = PrefixTable(std::move(entries));
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view utf8) const {
  std::vector<Part> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; !table_.empty() && at < utf8.size();) {
    const AddedToken* token = nullptr;
    table_.each_prefix(utf8.substr(at), [&](std::size_t, std::int32_t index) {
      token = &tokens_[static_cast<std::size_t>(index)];
    });
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + token->content.size();
    at = end;
    if (token->single_word && (word_before(utf8, begin) || word_after(utf8, end))) continue;
    if (token->lstrip) begin = std::max(spaces_before(utf8, begin), done);
    if (token->rstrip) end = spaces_after(utf8, end);
    if (done < begin) parts.push_back({done, begin, -1});
    parts.push_back({begin, end, token->id});
    done = end;
  }
  if (done < utf8.size()) parts.push_back({done, utf8.size(), -1});
  return parts;
}

}  // namespace vfm::text
