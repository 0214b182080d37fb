// SPDX-License-Identifier: Apache-2.0
#include "text/pre_tokenizer.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json.h"
#include "text/characters.h"
#include "text/pattern.h"

namespace vfm::text {
namespace {

enum class Delimiter { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Joins neighbouring spans as `delimiter` says, and returns the spans to keep.
std::vector<TextSpan> joined(const std::vector<TextSpan>& spans, Delimiter delimiter) {
  std::vector<TextSpan> out;
  bool before = false;  // Whether the previous span was a match.
  for (const TextSpan& span : spans) {
    bool join = false;
    if (delimiter == Delimiter::removed && span.match) continue;
    if (delimiter == Delimiter::merged_with_previous) join = span.match && !before;
    if (delimiter == Delimiter::contiguous) join = span.match == before;
    before = span.match;
    if (join && !out.empty()) {
      out.back().end = span.end;
    } else {
      out.push_back(span);
    }
  }
  if (delimiter != Delimiter::merged_with_next) return out;
  // As merged_with_previous, from the end.
  std::vector<TextSpan> merged;
  before = false;
  for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
    if (span->match && !before && !merged.empty()) {
      merged.back().begin = span->begin;
    } else {
      merged.push_back(*span);
    }
    before = span->match;
  }
  return {merged.rbegin(), merged.rend()};
}

void split(const NormalPiece& piece, const std::vector<TextSpan>& spans, Delimiter delimiter,
           std::vector<NormalPiece>& out) {
  for (const TextSpan& span : joined(spans, delimiter))
    if (span.begin < span.end)
      out.push_back({piece.text.substr(span.begin, span.end - span.begin),
                     piece.at_start && span.begin == 0});
}

/// Returns each character for which `wanted` is true as a match.
template <class Wanted>
std::vector<TextSpan> characters(std::string_view text, Wanted wanted) {
  std::vector<TextSpan> spans;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (!wanted(next_code_point(text, at))) continue;
    if (done < begin) spans.push_back({done, begin, false});
    spans.push_back({begin, at, true});
    done = at;
  }
  if (done < text.size()) spans.push_back({done, text.size(), false});
  return spans;
}

template <class Wanted>
std::vector<NormalPiece> split_at(const std::vector<NormalPiece>& pieces, Wanted wanted,
                                  Delimiter delimiter) {
  std::vector<NormalPiece> out;
  for (const NormalPiece& piece : pieces)
    split(piece, characters(piece.text, wanted), delimiter, out);
  return out;
}

class BertPreTokenizer : public PreTokenizer {
 public:
  std::vector<NormalPiece> apply(std::vector<NormalPiece> pieces) const override {
    return split_at(split_at(pieces, is_space, Delimiter::removed), is_bert_punctuation,
                    Delimiter::isolated);
  }
};

class WhitespaceSplit : public PreTokenizer {
 public:
  std::vector<NormalPiece> apply(std::vector<NormalPiece> pieces) const override {
    return split_at(pieces, is_space, Delimiter::removed);
  }
};

/// Splits into runs of word characters and runs of other characters except spaces.
class Whitespace : public PreTokenizer {
 public:
  std::vector<NormalPiece> apply(std::vector<NormalPiece> pieces) const override {
    return split_at(split_at(pieces, is_space, Delimiter::removed), is_word, Delimiter::contiguous);
  }
};

class Digits : public PreTokenizer {
 public:
  explicit Digits(const Json& json)
      : delimiter_(get_bool(json, "individual_digits").value_or(false) ? Delimiter::isolated
                                                                       : Delimiter::contiguous) {}
  std::vector<NormalPiece> apply(std::vector<NormalPiece> pieces) const override {
    return split_at(pieces, is_numeric, delimiter_);
  }

 private:
  Delimiter delimiter_;
};

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(const Json& json, std::string_view what)
      : prefix_space_(get_bool(json, "add_prefix_space").value_or(true)),
        use_pattern_(get_bool(json, "use_regex").value_or(true)),
        pattern_(
            "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|"
            "\\s+",
            what) {}

  std::vector<NormalPiece> apply(std::vector<NormalPiece> pieces) const override {
    const std::array<std::string, 256>& characters = byte_characters();
    std::vector<NormalPiece> out;
    for (NormalPiece& piece : pieces) {
      if (prefix_space_ && !piece.text.starts_with(' ')) piece.text.insert(piece.text.begin(), ' ');
      if (use_pattern_) {
        split(piece, pattern_.find(piece.text), Delimiter::isolated, out);
      } else {
        out.push_back(std::move(piece));
      }
    }
    for (NormalPiece& piece : out) {
      std::string visible;
      for (const char byte : piece.text)
        visible += characters[static_cast<unsigned char>(byte)];
      piece.text = std::move(visible);
    }
    return out;
  }

 private:
  bool prefix_space_, use_pattern_;
  Pattern pattern_;
};

/// As in sentencepiece: spaces become a visible mark, the text begins with a mark, and each mark
/// begins a piece.
class Metaspace : public PreTokenizer {
 public:
  Metaspace(const Json& json, std::string_view what)
      : mark_(need_string(json, "replacement", what)),
        split_(get_bool(json, "split").value_or(true)) {
    if (count_code_points(mark_) != 1)
      fail_usage("{} has a Metaspace whose \"replacement\" is not one character", what);
    // Older files have only add_prefix_space.
    const bool prefix = get_bool(json, "add_prefix_space").value_or(true);
    scheme_ = get_string(json, "prepend_scheme").value_or(prefix ? "always" : "never");
    if ((scheme_ != "always" && scheme_ != "first" && scheme_ != "never") ||
        (!prefix && scheme_ != "never"))
      fail_usage("{} has a Metaspace with the \"prepend_scheme\" '{}', which is not supported",
                 what, scheme_);
  }

  std::vector<NormalPiece> apply(std::vector<NormalPiece> pieces) const override {
    std::vector<NormalPiece> out;
    std::size_t zero = 0;
    const char32_t mark = next_code_point(mark_, zero);
    for (NormalPiece& piece : pieces) {
      std::string marked;
      for (const char c : piece.text)
        c == ' ' ? marked += mark_ : marked += c;
      const bool prepend = scheme_ == "always" || (scheme_ == "first" && piece.at_start);
      if (prepend && !marked.starts_with(mark_)) marked.insert(0, mark_);
      piece.text = std::move(marked);
      if (split_) {
        split(piece, characters(piece.text, [&](char32_t c) { return c == mark; }),
              Delimiter::merged_with_next, out);
      } else {
        out.push_back(std::move(piece));
      }
    }
    return out;
  }

 private:
  std::string mark_, scheme_;
  bool split_;
};

class Split : public PreTokenizer {
 public:
  Split(const Json& json, std::string_view what)
      : pattern_(Pattern::from_json(json, what)),
        invert_(get_bool(json, "invert").value_or(false)) {
    const std::string behavior = need_string(json, "behavior", what);
    constexpr std::string_view kNames[] = {"Removed", "Isolated", "MergedWithPrevious",
                                           "MergedWithNext", "Contiguous"};
    const auto* const found = std::find(std::begin(kNames), std::end(kNames), behavior);
    if (found == std::end(kNames))
      fail_usage("{} has a Split with the behavior '{}', which is not supported", what, behavior);
    delimiter_ = static_cast<Delimiter>(found - std::begin(kNames));
  }

  std::vector<NormalPiece> apply(std::vector<NormalPiece> pieces) const override {
    std::vector<NormalPiece> out;
    for (const NormalPiece& piece : pieces) {
      std::vector<TextSpan> spans = pattern_.find(piece.text);
      for (TextSpan& span : spans)
        span.match = span.match != invert_;
      split(piece, spans, delimiter_, out);
    }
    return out;
  }

 private:
  Pattern pattern_;
  Delimiter delimiter_;
  bool invert_;
};

class PreTokenizerSequence : public PreTokenizer {
 public:
  PreTokenizerSequence(const Json& json, std::string_view what) {
    const auto parts = json.find("pretokenizers");
    if (parts == json.end() || !parts->is_array())
      fail_usage("{} has a Sequence without \"pretokenizers\"", what);
    for (const Json& part : *parts)
      if (auto made = make_pre_tokenizer(part, what)) parts_.push_back(std::move(made));
  }
  std::vector<NormalPiece> apply(std::vector<NormalPiece> pieces) const override {
    for (const auto& part : parts_)
      pieces = part->apply(std::move(pieces));
    return pieces;
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

}  // namespace

const std::array<std::string, 256>& byte_characters() {
  static const std::array<std::string, 256> kCharacters = [] {
    std::array<std::string, 256> made;
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
      append_code_point(made[byte], visible ? byte : next++);
    }
    return made;
  }();
  return kCharacters;
}

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const Json& json, std::string_view what) {
  if (json.is_null()) return nullptr;
  const std::string type = get_string(json, "type").value_or("");
  if (type == "BertPreTokenizer") return std::make_unique<BertPreTokenizer>();
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(json, what);
  if (type == "Digits") return std::make_unique<Digits>(json);
  if (type == "Metaspace") return std::make_unique<Metaspace>(json, what);
  if (type == "Sequence") return std::make_unique<PreTokenizerSequence>(json, what);
  if (type == "Split") return std::make_unique<Split>(json, what);
  if (type == "Whitespace") return std::make_unique<Whitespace>();
  if (type == "WhitespaceSplit") return std::make_unique<WhitespaceSplit>();
  fail_usage("{} has the pre-tokenizer '{}', which is not supported", what, type);
}

}  // namespace vfm::text
