// SPDX-License-Identifier: Apache-2.0
#include "shard/sample.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/hash.h"

namespace vfm::shard {
namespace {

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool is_joiner(char c) {
  return c == '_' || c == '-';
}

}  // namespace

const std::string* Sample::find(std::string_view extension) const {
  for (const Member& member : members)
    if (member.extension == extension) return &member.data;
  return nullptr;
}

std::string_view SampleView::find(std::string_view extension) const {
  for (const MemberView& member : members)
    if (member.extension == extension) return member.data;
  return {};
}

std::int64_t Sample::bytes() const {
  std::size_t sum = 0;
  for (const Member& member : members)
    sum += member.data.size();
  return static_cast<std::int64_t>(sum);
}

std::string hash_sample(const Sample& sample) {
  Hasher hasher;
  for (const Member& member : sample.members)
    hasher.update(fmt::format("{} {}\n", member.extension, member.data.size())).update(member.data);
  return hasher.hex64();
}

bool valid_key(std::string_view key) {
  return !key.empty() && key.size() <= 80 && !key.starts_with("__") &&
         std::all_of(key.begin(), key.end(), [](char c) {
           return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || is_joiner(c);
         });
}

bool valid_extension(std::string_view extension) {
  return !extension.empty() && extension.front() != '.' && extension.back() != '.' &&
         std::all_of(extension.begin(), extension.end(),
                     [](char c) { return is_lower_or_digit(c) || is_joiner(c) || c == '.'; });
}

std::string sample_name(std::string_view key, std::string_view tar) {
  return fmt::format("{} of '{}'", key, tar);
}

bool split_member_name(std::string_view name, std::string& key, std::string& extension) {
  while (name.starts_with("./"))
    name.remove_prefix(2);
  const std::string_view first = name.substr(0, name.find('/'));
  if (first.size() >= 4 && first.starts_with("__") && first.ends_with("__")) return false;
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base) return false;
  std::string_view rest = name.substr(dot + 1);
  while (rest.starts_with('.'))
    rest.remove_prefix(1);
  if (rest.empty()) return false;
  key.assign(name.substr(0, dot));
  extension.assign(rest);
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return true;
}

}  // namespace vfm::shard
