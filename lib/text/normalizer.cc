// SPDX-License-Identifier: Apache-2.0
#include "text/normalizer.h"

#include <optional>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/characters.h"
#include "text/charsmap.h"
#include "text/pattern.h"

namespace vfm::text {
namespace {

template <class Keep>
void filter(NormalPiece& piece, Keep keep) {
  std::string out;
  for (std::size_t at = 0; at < piece.text.size();) {
    const std::size_t begin = at;
    if (keep(next_code_point(piece.text, at))) {
      out.append(piece.text, begin, at - begin);
    } else if (out.empty()) {
      piece.at_start = false;
    }
  }
  piece.text = std::move(out);
}

template <class Append>
void map(NormalPiece& piece, Append append) {
  std::string out;
  for (std::size_t at = 0; at < piece.text.size();)
    append(out, next_code_point(piece.text, at));
  piece.text = std::move(out);
}

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const Json& json)
      : clean_(get_bool(json, "clean_text").value_or(true)),
        space_cjk_(get_bool(json, "handle_chinese_chars").value_or(true)),
        lower_(get_bool(json, "lowercase").value_or(true)),
        strip_accents_(get_bool(json, "strip_accents").value_or(lower_)) {}

  void apply(NormalPiece& piece) const override {
    if (clean_) {
      filter(piece, [](char32_t c) { return c != 0 && c != 0xfffd && !is_bert_control(c); });
      map(piece,
          [](std::string& out, char32_t c) { append_code_point(out, is_space(c) ? ' ' : c); });
    }
    if (space_cjk_) {
      map(piece, [](std::string& out, char32_t c) {
        const bool spaced = is_cjk_ideograph(c);
        if (spaced) out += ' ';
        append_code_point(out, c);
        if (spaced) out += ' ';
      });
    }
    if (strip_accents_) {
      piece.text = normal_form(piece.text, NormalForm::nfd);
      filter(piece, [](char32_t c) { return !is_bert_accent(c); });
    }
    if (lower_) map(piece, append_lower_case);
  }

 private:
  bool clean_, space_cjk_, lower_, strip_accents_;
};

class Lowercase : public Normalizer {
 public:
  void apply(NormalPiece& piece) const override { map(piece, append_lower_case); }
};

class UnicodeForm : public Normalizer {
 public:
  explicit UnicodeForm(NormalForm form) : form_(form) {}
  void apply(NormalPiece& piece) const override { piece.text = normal_form(piece.text, form_); }

 private:
  NormalForm form_;
};

class StripAccents : public Normalizer {
 public:
  void apply(NormalPiece& piece) const override {
    filter(piece, [](char32_t c) { return !is_combining_mark(c); });
  }
};

/// The cleaning that sentencepiece calls "nmt".
class Nmt : public Normalizer {
 public:
  void apply(NormalPiece& piece) const override {
    filter(piece, [](char32_t c) {
      return !((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f ||
               c == 0x8f || c == 0x9f);
    });
    map(piece, [](std::string& out, char32_t c) {
      const bool space = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                         (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 ||
                         c == 0x2581 || c == 0xfeff || c == 0xfffd;
      append_code_point(out, space ? ' ' : c);
    });
  }
};

class Precompiled : public Normalizer {
 public:
  Precompiled(const Json& json, std::string_view what)
      : map_(decode_base64(need_string(json, "precompiled_charsmap", what), what), what) {}
  void apply(NormalPiece& piece) const override { piece.text = map_.apply(piece.text); }

 private:
  Charsmap map_;
};

class Prepend : public Normalizer {
 public:
  Prepend(const Json& json, std::string_view what) : prefix_(need_string(json, "prepend", what)) {}
  void apply(NormalPiece& piece) const override {
    if (!piece.text.empty()) piece.text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class Replace : public Normalizer {
 public:
  Replace(const Json& json, std::string_view what)
      : pattern_(Pattern::from_json(json, what)), content_(need_string(json, "content", what)) {}

  void apply(NormalPiece& piece) const override {
    std::string out;
    for (const TextSpan& span : pattern_.find(piece.text)) {
      const std::string_view part =
          std::string_view(piece.text).substr(span.begin, span.end - span.begin);
      // The replacement has the position of the last character that it replaces.
      if (span.match && span.begin == 0 && (content_.empty() || count_code_points(part) > 1))
        piece.at_start = false;
      out += span.match ? std::string_view(content_) : part;
    }
    piece.text = std::move(out);
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Strip : public Normalizer {
 public:
  explicit Strip(const Json& json)
      : left_(get_bool(json, "strip_left").value_or(false)),
        right_(get_bool(json, "strip_right").value_or(false)) {}

  void apply(NormalPiece& piece) const override {
    if (left_) {
      std::size_t end = 0;
      for (std::size_t at = 0; at < piece.text.size() && is_space(next_code_point(piece.text, at));)
        end = at;
      piece.text.erase(0, end);
      if (end > 0) piece.at_start = false;
    }
    while (right_ && !piece.text.empty()) {
      const std::size_t last = previous_boundary(piece.text, piece.text.size());
      std::size_t at = last;
      if (!is_space(next_code_point(piece.text, at))) break;
      piece.text.resize(last);
    }
  }

 private:
  bool left_, right_;
};

class NormalizerSequence : public Normalizer {
 public:
  NormalizerSequence(const Json& json, std::string_view what) {
    const auto parts = json.find("normalizers");
    if (parts == json.end() || !parts->is_array())
      fail_usage("{} has a Sequence without \"normalizers\"", what);
    for (const Json& part : *parts)
      if (auto made = make_normalizer(part, what)) parts_.push_back(std::move(made));
  }
  void apply(NormalPiece& piece) const override {
    for (const auto& part : parts_)
      part->apply(piece);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(const Json& json, std::string_view what) {
  if (json.is_null()) return nullptr;
  const std::string type = get_string(json, "type").value_or("");
  if (type == "BertNormalizer") return std::make_unique<BertNormalizer>(json);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "NFC") return std::make_unique<UnicodeForm>(NormalForm::nfc);
  if (type == "NFD") return std::make_unique<UnicodeForm>(NormalForm::nfd);
  if (type == "NFKC") return std::make_unique<UnicodeForm>(NormalForm::nfkc);
  if (type == "NFKD") return std::make_unique<UnicodeForm>(NormalForm::nfkd);
  if (type == "Nmt") return std::make_unique<Nmt>();
  if (type == "Precompiled") return std::make_unique<Precompiled>(json, what);
  if (type == "Prepend") return std::make_unique<Prepend>(json, what);
  if (type == "Replace") return std::make_unique<Replace>(json, what);
  if (type == "Sequence") return std::make_unique<NormalizerSequence>(json, what);
  if (type == "Strip") return std::make_unique<Strip>(json);
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  fail_usage("{} has the normalizer '{}', which is not supported", what, type);
}

}  // namespace vfm::text
