// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "text/characters.h"
#include "text/prefix_table.h"
#include "text/subword_model.h"

namespace vfm::text {
namespace {

/// How much lower than the lowest token an unknown character scores.
constexpr double kUnknownPenalty = 10;

struct Scored {
  std::vector<std::pair<std::string, std::int32_t>> tokens;
  std::vector<double> scores;  ///< By id.
};

Scored read_scored(const Json& model, std::string_view what) {
  const auto vocab = model.find("vocab");
  if (vocab == model.end() || !vocab->is_array() || vocab->empty())
    fail_usage("{} has a Unigram model without \"vocab\"", what);
  Scored scored;
  for (const Json& entry : *vocab) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      fail_usage("{} has a \"vocab\" whose entries are not a token and its score", what);
    scored.tokens.emplace_back(entry[0].get<std::string>(),
                               static_cast<std::int32_t>(scored.scores.size()));
    scored.scores.push_back(entry[1].get<double>());
  }
  return scored;
}

Vocabulary vocabulary_of(const Scored& scored) {
  Vocabulary vocabulary;
  for (const auto& [token, id] : scored.tokens)
    vocabulary[token] = id;
  return vocabulary;
}

class Unigram : public SubwordModel {
 public:
  Unigram(Scored scored, std::optional<std::int32_t> unknown, bool bytes)
      : SubwordModel(vocabulary_of(scored)),
        scores_(std::move(scored.scores)),
        tokens_(std::move(scored.tokens)),
        unknown_(unknown),
        bytes_(bytes) {
    unknown_score_ = *std::ranges::min_element(scores_) - kUnknownPenalty;
  }

  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const override {
    const std::vector<Node> best = best_paths(piece);
    std::vector<std::string_view> parts;  // From the last to the first.
    bool unknown_before = false;
    for (std::size_t end = piece.size(); end > 0; end = best[end].begin) {
      const std::size_t begin = best[end].begin;
      const bool unknown = best[end].id == unknown_;
      // Unknown neighbours become one part.
      if (unknown && unknown_before) {
        parts.back() = piece.substr(begin, parts.back().size() + end - begin);
      } else {
        parts.push_back(piece.substr(begin, end - begin));
      }
      unknown_before = unknown;
    }
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (const auto id = find(vocabulary(), *part)) {
        ids.push_back(*id);
      } else if (!bytes_ || !append_bytes(vocabulary(), *part, ids)) {
        ids.push_back(unknown_.value());
      }
    }
  }

 private:
  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
  /// The best path to a position: the sum of its scores, and its last token.
  struct Node {
    double score = 0;
    std::size_t begin = kNowhere;
    std::optional<std::int32_t> id;
  };

  std::vector<Node> best_paths(std::string_view piece) const {
    std::vector<Node> best(piece.size() + 1);
    const auto offer = [&](std::size_t begin, std::size_t length, double score,
                           std::optional<std::int32_t> id) {
      Node& node = best[begin + length];
      const double sum = score + best[begin].score;
      if (node.begin == kNowhere || sum > node.score) node = {sum, begin, id};
    };
    for (std::size_t begin = 0, next = 0; begin < piece.size(); begin = next) {
      next_code_point(piece, next);
      const std::size_t character = next - begin;
      bool covered = false;
      tokens_.each_prefix(piece.substr(begin), [&](std::size_t length, std::int32_t id) {
        offer(begin, length, scores_[static_cast<std::size_t>(id)], id);
        covered = covered || length == character;
      });
      if (covered) continue;
      if (!unknown_)
        fail("the tokenizer has no token for '{}', and none for what it does not know",
             piece.substr(begin, character));
      offer(begin, character, unknown_score_, unknown_);
    }
    return best;
  }

  std::vector<double> scores_;
  PrefixTable tokens_;
  std::optional<std::int32_t> unknown_;
  bool bytes_;
  double unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<SubwordModel> make_unigram(const Json& model, std::string_view what) {
  Scored scored = read_scored(model, what);
  const auto unknown = get_integer(model, "unk_id");
  if (unknown && (*unknown < 0 || *unknown >= static_cast<std::int64_t>(scored.scores.size())))
    fail_usage("{} has the \"unk_id\" {}, which is not in its vocabulary", what, *unknown);
  std::optional<std::int32_t> id;
  if (unknown) id = static_cast<std::int32_t>(*unknown);
  return std::make_unique<Unigram>(std::move(scored), id,
                                   get_bool(model, "byte_fallback").value_or(false));
}

}  // namespace vfm::text
