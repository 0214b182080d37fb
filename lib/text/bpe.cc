// SPDX-License-Identifier: Apache-2.0
#include <queue>
#include <tuple>

#include "base/error.h"
#include "base/json.h"
#include "text/characters.h"
#include "text/subword_model.h"

namespace vfm::text {
namespace {

struct Merge {
  std::int32_t rank = 0, id = 0;  ///< The order in training, and the id of the joined token.
};

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

using Merges = std::unordered_map<std::uint64_t, Merge>;

/// Takes "a b", as in older files, or ["a", "b"].
std::pair<std::string, std::string> pair_of(const Json& merge, std::string_view what) {
  if (merge.is_string()) {
    const std::string text = merge.get<std::string>();
    const std::size_t space = text.find(' ');
    if (space != text.npos && text.find(' ', space + 1) == text.npos)
      return {text.substr(0, space), text.substr(space + 1)};
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  fail_usage("{} has \"merges\" that are not pairs of tokens", what);
}

Merges read_merges(const Json& model, const Vocabulary& vocabulary, std::size_t prefix,
                   std::string_view what) {
  const auto list = model.find("merges");
  if (list == model.end() || !list->is_array())
    fail_usage("{} has a BPE model without \"merges\"", what);
  Merges merges;
  std::int32_t rank = 0;
  for (const Json& merge : *list) {
    const auto [left, right] = pair_of(merge, what);
    const auto a = find(vocabulary, left), b = find(vocabulary, right);
    const auto joined =
        right.size() < prefix ? std::nullopt : find(vocabulary, left + right.substr(prefix));
    if (!a || !b || !joined)
      fail_usage("{} merges '{}' and '{}', which are not both in its vocabulary, or what they make",
                 what, left, right);
    merges[pair_key(*a, *b)] = {rank++, *joined};
  }
  return merges;
}

class Bpe : public SubwordModel {
 public:
  Bpe(const Json& model, Vocabulary vocabulary_in, std::string_view what)
      : SubwordModel(std::move(vocabulary_in)),
        prefix_(get_string(model, "continuing_subword_prefix").value_or("")),
        suffix_(get_string(model, "end_of_word_suffix").value_or("")),
        fuse_(get_bool(model, "fuse_unk").value_or(false)),
        bytes_(get_bool(model, "byte_fallback").value_or(false)),
        whole_(get_bool(model, "ignore_merges").value_or(false)),
        merges_(read_merges(model, vocabulary(), prefix_.size(), what)) {
    if (get_number(model, "dropout").value_or(0) != 0)
      fail_usage("{} has a BPE model with dropout, whose ids are random", what);
    if (const auto unknown = get_string(model, "unk_token")) {
      unknown_ = find(vocabulary(), *unknown);
      if (!unknown_) fail_usage("{} has no token '{}' in its vocabulary", what, *unknown);
    }
  }

  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const override {
    if (whole_) {
      if (const auto id = find(vocabulary(), piece)) {
        ids.push_back(*id);
        return;
      }
    }
    std::vector<Symbol> symbols = characters(piece);
    merge(symbols);
    for (const Symbol& symbol : symbols)
      if (symbol.id >= 0) ids.push_back(symbol.id);
  }

 private:
  /// A token of the piece. `before` and `after` are indices of its neighbours, or -1. If `id` is
  /// -1, the token was joined to another.
  struct Symbol {
    std::int32_t id, before, after;
  };

  std::vector<Symbol> characters(std::string_view piece) const {
    std::vector<std::int32_t> ids;
    bool unknown_waits = false;
    const auto flush = [&] {
      if (unknown_waits) ids.push_back(*unknown_);
      unknown_waits = false;
    };
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t begin = at;
      next_code_point(piece, at);
      std::string token = begin == 0 ? "" : prefix_;
      token += piece.substr(begin, at - begin);
      if (at == piece.size()) token += suffix_;
      if (const auto id = find(vocabulary(), token)) {
        flush();
        ids.push_back(*id);
      } else if (!bytes_ || !append_bytes(vocabulary(), token, ids)) {
        // Without a token for unknown characters, they are left out.
        if (!fuse_) flush();
        unknown_waits = unknown_.has_value();
      }
    }
    flush();
    std::vector<Symbol> symbols;
    const auto count = static_cast<std::int32_t>(ids.size());
    for (std::int32_t i = 0; i < count; ++i)
      symbols.push_back({ids[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
    return symbols;
  }

  /// Always joins the pair that training joined first. Of equal pairs it joins the leftmost.
  void merge(std::vector<Symbol>& symbols) const {
    using Candidate = std::tuple<std::int32_t, std::int32_t, std::int32_t>;  // Rank, position, id.
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto at = [&](std::int32_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
    const auto offer = [&](std::int32_t left) {
      if (left < 0 || at(left).after < 0) return;
      const auto found = merges_.find(pair_key(at(left).id, at(at(left).after).id));
      if (found != merges_.end()) queue.emplace(found->second.rank, left, found->second.id);
    };
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(symbols.size()); ++i)
      offer(i);
    while (!queue.empty()) {
      const auto [rank, left, id] = queue.top();
      queue.pop();
      const std::int32_t right = at(left).id < 0 ? -1 : at(left).after;
      if (right < 0) continue;
      // Since the pair was queued, its tokens may have been joined to others.
      const auto found = merges_.find(pair_key(at(left).id, at(right).id));
      if (found == merges_.end() || found->second.id != id) continue;
      at(left).id = id;
      at(left).after = at(right).after;
      if (at(right).after >= 0) at(at(right).after).before = left;
      at(right).id = -1;
      offer(at(left).before);
      offer(left);
    }
  }

  std::string prefix_, suffix_;
  bool fuse_, bytes_, whole_;
  std::optional<std::int32_t> unknown_;
  Merges merges_;
};

}  // namespace

std::unique_ptr<SubwordModel> make_bpe(const Json& model, Vocabulary vocabulary,
                                       std::string_view what) {
  return std::make_unique<Bpe>(model, std::move(vocabulary), what);
}

}  // namespace vfm::text
