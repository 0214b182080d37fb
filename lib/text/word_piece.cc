// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/json.h"
#include "text/characters.h"
#include "text/subword_model.h"

namespace vfm::text {
namespace {

class WordPiece : public SubwordModel {
 public:
  WordPiece(const Json& model, Vocabulary vocabulary_in, std::string_view what)
      : SubwordModel(std::move(vocabulary_in)),
        prefix_(get_string(model, "continuing_subword_prefix").value_or("##")),
        longest_(get_integer(model, "max_input_chars_per_word").value_or(100)) {
    const std::string unknown = get_string(model, "unk_token").value_or("[UNK]");
    const auto id = find(vocabulary(), unknown);
    if (!id) fail_usage("{} has no token '{}' in its vocabulary", what, unknown);
    unknown_ = *id;
  }

  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const override {
    const std::size_t before = ids.size();
    bool known = static_cast<std::int64_t>(count_code_points(piece)) <= longest_;
    for (std::size_t begin = 0; known && begin < piece.size();) {
      std::size_t end = piece.size();
      std::optional<std::int32_t> id;
      for (; end > begin; end = previous_boundary(piece, end)) {
        std::string token = begin == 0 ? "" : prefix_;
        token += piece.substr(begin, end - begin);
        if ((id = find(vocabulary(), token))) break;
      }
      known = id.has_value();
      if (known) ids.push_back(*id);
      begin = end;
    }
    if (known) return;
    // If one part is unknown, the word becomes the unknown token.
    ids.resize(before);
    ids.push_back(unknown_);
  }

 private:
  std::string prefix_;
  std::int64_t longest_;
  std::int32_t unknown_ = 0;
};

}  // namespace

std::unique_ptr<SubwordModel> make_word_piece(const Json& model, Vocabulary vocabulary,
                                              std::string_view what) {
  return std::make_unique<WordPiece>(model, std::move(vocabulary), what);
}

}  // namespace vfm::text
