// SPDX-License-Identifier: Apache-2.0
#include "text/charsmap.h"

#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <cstring>
#include <memory>

#include "base/error.h"
#include "text/characters.h"
#include "text/unicode.h"

namespace vfm::text {
namespace {

// A word of the trie. Bit 8: a key ends here. Bits 10 to 30: offset of the children, in units of
// 256 if bit 9 is set. Bits 0 to 7 and 31: the byte that leads here.
constexpr std::uint32_t kLeaf = 1u << 8, kLabel = 0x800000ffu, kValue = 0x7fffffffu;

std::uint32_t offset_of(std::uint32_t word) {
  return (word >> 10) << ((word & (1u << 9)) >> 6);
}

template <class Part>
void each_grapheme(std::string_view utf8, Part part) {
  UErrorCode status = U_ZERO_ERROR;
  UText* text =
      utext_openUTF8(nullptr, utf8.data(), static_cast<std::int64_t>(utf8.size()), &status);
  const std::unique_ptr<UText, decltype(&utext_close)> closed(text, utext_close);
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  if (U_SUCCESS(status)) breaks->setText(text, status);
  if (U_FAILURE(status)) fail("Unicode: cannot find characters: {}", u_errorName(status));
  std::int32_t begin = breaks->first();
  for (std::int32_t end = breaks->next(); end != icu::BreakIterator::DONE;
       begin = end, end = breaks->next())
    part(utf8.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, std::string_view what) {
  std::uint32_t size = 0;
  if (bytes.size() >= sizeof size) std::memcpy(&size, bytes.data(), sizeof size);
  if (size == 0 || size % sizeof size != 0 || bytes.size() - sizeof size < size)
    fail_usage("{} has a malformed \"precompiled_charsmap\"", what);
  trie_.resize(size / sizeof size);
  std::memcpy(trie_.data(), bytes.data() + sizeof size, size);
  replacements_ = bytes.substr(sizeof size + size);
  if (valid_utf8(replacements_) != replacements_)
    fail_usage("{} has a \"precompiled_charsmap\" that is not UTF-8", what);
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  std::size_t node = offset_of(trie_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    node ^= byte;
    if (byte == 0 || node >= trie_.size() || (trie_[node] & kLabel) != byte) return std::nullopt;
    const std::uint32_t word = trie_[node];
    node ^= offset_of(word);
    if ((word & kLeaf) == 0) continue;
    const std::size_t at = node < trie_.size() ? trie_[node] & kValue : replacements_.size();
    // In a damaged file a value can point anywhere, even into a character.
    if (at >= replacements_.size() ||
        (static_cast<unsigned char>(replacements_[at]) & 0xc0u) == 0x80u)
      return std::nullopt;
    return std::string_view(replacements_.c_str() + at);
  }
  return std::nullopt;
}

std::string Charsmap::apply(std::string_view utf8) const {
  constexpr std::size_t kLongestLookedUp = 5;
  std::string out;
  out.reserve(utf8.size());
  each_grapheme(utf8, [&](std::string_view grapheme) {
    if (grapheme.size() <= kLongestLookedUp) {
      if (const auto replacement = find(grapheme)) {
        out += *replacement;
        return;
      }
    }
    for (std::size_t at = 0; at < grapheme.size();) {
      const std::size_t begin = at;
      next_code_point(grapheme, at);
      const std::string_view character = grapheme.substr(begin, at - begin);
      out += find(character).value_or(character);
    }
  });
  return out;
}

std::string decode_base64(std::string_view text, std::string_view what) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('='))
    text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) fail_usage("{} has malformed base64", what);
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if ((count += 6) < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xffu);
  }
  return out;
}

}  // namespace vfm::text
