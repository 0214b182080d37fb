// SPDX-License-Identifier: Apache-2.0
#include "text/decoding.h"

#include "text/unicode.h"

namespace vfm::text {
namespace {

/// Returns where an incomplete character at the end of `bytes` begins, or the size of `bytes`. The
/// first two bytes of the character must be valid (Unicode 15, table 3-7).
std::size_t whole_part(const std::string& bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  for (std::size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const std::size_t begin = bytes.size() - back;
    const unsigned char first = at(begin);
    if (first >= 0x80 && first < 0xc0) continue;
    const std::size_t length = first < 0xc2 || first > 0xf4 ? 1
                               : first < 0xe0               ? 2
                               : first < 0xf0               ? 3
                                                            : 4;
    if (length <= back) return bytes.size();
    if (back > 1) {
      const unsigned char second = at(begin + 1);
      const int low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
      const int high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
      if (second < low || second > high) return bytes.size();
    }
    return begin;
  }
  return bytes.size();
}

}  // namespace

std::string TextStream::add(std::int32_t id) {
  const auto found = tokens_->tokens.find(id);
  if (found == tokens_->tokens.end() || (found->second.special && !keep_special_)) return {};
  waiting_ += found->second.bytes;
  const std::size_t whole = whole_part(waiting_);
  std::string text = valid_utf8(std::string_view(waiting_).substr(0, whole));
  waiting_.erase(0, whole);
  return text;
}

std::string TextStream::end() {
  std::string text = valid_utf8(waiting_);
  waiting_.clear();
  return text;
}

std::string decode(std::shared_ptr<const TokenBytes> tokens, std::span<const std::int32_t> ids,
                   bool keep_special) {
  TextStream stream(std::move(tokens), keep_special);
  std::string text;
  for (const std::int32_t id : ids)
    text += stream.add(id);
  return text + stream.end();
}

}  // namespace vfm::text
