// SPDX-License-Identifier: Apache-2.0
#include "columns/search/index_search.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "columns/search/inverted_file.h"
#include "columns/search/match_facts.h"
#include "columns/search/vector_index.h"
#include "columns/search/vector_query.h"
#include "share/ordered.h"

namespace vfm::columns {
namespace {

// Measured with tests/bench/search_scale.sh: a recall@10 of at least 0.95 needs about these values.
constexpr std::uint64_t kLeastCodes = 20000, kShareOfCodes = 16;
constexpr std::size_t kLeastCompared = 1000, kComparedEach = 20;
constexpr std::size_t kMostTies = 1000;         // hits that are equal to the last of the best
constexpr std::size_t kRowsTogether = 256;      // rows in a product of --exact
constexpr std::size_t kQueriesTogether = 1024;  // queries of --exact in a pass over all vectors
constexpr float kSlack = 1e-4f;                 // error of a product in f32; 1e-6 was measured

struct Hit {
  double score = 0;
  std::size_t shard = 0;
  std::uint64_t row = 0;  // of the shard
};
bool better(const Hit& a, const Hit& b) {
  if (a.score != b.score) return a.score > b.score;
  return std::pair(a.shard, a.row) < std::pair(b.shard, b.row);
}

/// Keeps the best hits, and hits equal to the last of them, because keys decide among these.
void keep_best(std::vector<Hit>& hits, std::size_t top) {
  std::sort(hits.begin(), hits.end(), better);
  if (hits.size() <= top) return;
  std::size_t n = top;
  while (n < hits.size() && n - top < kMostTies && hits[n].score == hits[top - 1].score)
    ++n;
  hits.resize(n);
}

class IndexSearch {
 public:
  IndexSearch(const SearchOptions& options, share::Slots& slots, Progress& progress)
      : options_(options),
        slots_(slots),
        progress_(progress),
        index_(options.index),
        queries_(vector_queries(options, index_.model())),
        inverted_(index_.model().dim, index_.centres(), index_.words()) {}

  long run(io::ManifestWriter& manifest);

 private:
  void look_for_changes();
  std::vector<Hit> near(std::size_t query);
  std::vector<Hit> compare(const std::vector<float>& query, const std::vector<std::uint32_t>& rows);
  void search(std::size_t begin, std::size_t end, io::ManifestWriter& manifest);
  std::vector<std::vector<Hit>> compare_all();
  std::vector<std::vector<Hit>> compare_shard(std::size_t shard);
  std::vector<Json> lines(std::size_t query, std::vector<Hit>& hits);
  void lost(std::size_t shard, const std::string& why);

  const SearchOptions& options_;
  share::Slots& slots_;
  Progress& progress_;
  VectorIndex index_;
  VectorQueries queries_;
  InvertedFile inverted_;
  std::vector<char> gone_;  // by shard
  bool any_gone_ = false;
  std::size_t begin_ = 0, end_ = 0;        // queries of the current pass
  std::vector<std::atomic<float>> least_;  // for each of them, the lowest of the best scores
  std::mutex mutex_;                       // guards lost_
  std::set<std::size_t> lost_;
};

void IndexSearch::lost(std::size_t shard, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (lost_.insert(shard).second) log_warning("{}: {}", index_.shards()[shard].path, why);
}

void IndexSearch::look_for_changes() {
  gone_.resize(index_.shards().size());
  for (std::size_t i = 0; i < gone_.size(); ++i) {
    const std::string why = index_.shards()[i].changed();
    if (why.empty()) continue;
    gone_[i] = 1;
    any_gone_ = true;
    lost(i, why + fmt::format(" since it was indexed; add it again: vfm-embed index {}",
                              options_.index));
  }
}

std::vector<Hit> IndexSearch::near(std::size_t number) {
  const std::vector<float> query = queries_.one(number);
  InvertedFile::Search search;
  search.codes =
      std::max({kLeastCodes, index_.entries() / kShareOfCodes, std::uint64_t{4} * options_.top});
  search.most = std::min(index_.entries(), kLeastCompared + kComparedEach * options_.top);
  search.list = [&](std::size_t list) { return index_.list(list); };
  if (any_gone_) search.take = [&](std::uint32_t row) { return !gone_[index_.shard_of(row)]; };
  return compare(query, inverted_.search(query, search));
}

std::vector<Hit> IndexSearch::compare(const std::vector<float>& query,
                                      const std::vector<std::uint32_t>& rows) {
  std::vector<Hit> hits;
  std::vector<float> stored(query.size());
  for (std::size_t i = 0; i < rows.size();) {
    const std::size_t number = index_.shard_of(rows[i]);
    const IndexedShard& shard = index_.shards()[number];
    const auto positions = index_.positions(number);
    const std::size_t first = i;
    while (i < rows.size() && rows[i] < shard.first + shard.rows)
      ++i;
    try {
      const shard::TarFile tar(shard.tar);
      for (std::size_t j = first; j < i; ++j) {
        const std::uint64_t row = rows[j] - shard.first;
        read_halves(tar, positions[row], stored);
        hits.push_back({stored_cosine(query, stored), number, row});
      }
    } catch (const Error& error) {
      lost(number, error.what());
      std::erase_if(hits, [&](const Hit& hit) { return hit.shard == number; });
    }
  }
  keep_best(hits, options_.top);
  return hits;
}

/// Selects hits by products in f32, and then computes exact scores.
std::vector<std::vector<Hit>> IndexSearch::compare_shard(std::size_t number) {
  std::vector<std::vector<Hit>> hits(end_ - begin_);
  if (gone_[number]) return hits;
  const IndexedShard& shard = index_.shards()[number];
  const auto positions = index_.positions(number);
  const std::size_t dim = queries_.dim, top = options_.top;
  const auto queries = std::span(queries_.values).subspan(begin_ * dim, hits.size() * dim);
  std::vector<float> least(hits.size());
  std::vector<std::size_t> most(hits.size(), 4 * top + 64);  // hits at which the worst are removed
  for (std::size_t q = 0; q < hits.size(); ++q)
    least[q] = least_[q];
  std::vector<float> block, stored(dim), products;
  std::vector<std::uint64_t> rows;
  const auto flush = [&] {
    unit_products(queries, block, dim, products);
    for (std::size_t q = 0; q < hits.size(); ++q)
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const float score = products[q * rows.size() + i];
        if (score < least[q]) continue;
        hits[q].push_back({score, number, rows[i]});
        if (hits[q].size() < most[q]) continue;
        const auto last = hits[q].begin() + static_cast<std::ptrdiff_t>(top) - 1;
        std::nth_element(hits[q].begin(), last, hits[q].end(), better);
        least[q] = std::max(least[q], static_cast<float>(last->score) - 2 * kSlack);
        std::erase_if(hits[q], [&](const Hit& hit) { return hit.score < least[q]; });
        most[q] = 2 * hits[q].size() + 4 * top;
      }
    block.clear();
    rows.clear();
  };
  try {
    const shard::TarFile tar(shard.tar);
    for (std::uint64_t row = 0; row < positions.size(); ++row) {
      if (positions[row] == 0) continue;
      if (rows.empty()) check_stop();
      read_halves(tar, positions[row], stored);
      if (!to_unit_length(stored)) continue;
      block.insert(block.end(), stored.begin(), stored.end());
      rows.push_back(row);
      if (rows.size() == kRowsTogether) flush();
    }
    if (!rows.empty()) flush();
    for (std::size_t q = 0; q < hits.size(); ++q) {
      const std::vector<float> query = queries_.one(begin_ + q);
      for (Hit& hit : hits[q]) {
        read_halves(tar, positions[hit.row], stored);
        hit.score = stored_cosine(query, stored);
      }
      keep_best(hits[q], top);
    }
  } catch (const Error& error) {
    lost(number, error.what());
    hits.assign(hits.size(), {});
  }
  return hits;
}

std::vector<std::vector<Hit>> IndexSearch::compare_all() {
  std::vector<std::vector<Hit>> best(end_ - begin_);
  least_ = std::vector<std::atomic<float>>(best.size());
  for (auto& least : least_)
    least = std::numeric_limits<float>::lowest();
  std::size_t next = 0;
  share::for_each_ordered<std::size_t, std::vector<std::vector<Hit>>>(
      slots_,
      [&]() -> std::optional<std::size_t> {
        if (next == index_.shards().size()) return std::nullopt;
        return next++;
      },
      [&](std::size_t& shard) { return compare_shard(shard); },
      [&](std::vector<std::vector<Hit>>& found) {
        for (std::size_t q = 0; q < found.size(); ++q) {
          best[q].insert(best[q].end(), found[q].begin(), found[q].end());
          keep_best(best[q], options_.top);
          if (best[q].size() >= options_.top)
            least_[q] = static_cast<float>(best[q][options_.top - 1].score) - kSlack;
        }
        progress_.add();
      },
      [](const std::vector<std::vector<Hit>>& found) { return held_bytes(found); });
  return best;
}

std::vector<Json> IndexSearch::lines(std::size_t query, std::vector<Hit>& hits) {
  struct Match {
    double score;
    Json facts;
  };
  std::vector<Match> matches;
  for (const Hit& hit : hits) {
    const IndexedShard& shard = index_.shards()[hit.shard];
    try {
      matches.push_back(
          {hit.score, match_facts(shard.record(), static_cast<std::int64_t>(hit.row),
                                  index_.model().kind, queries_.one(query), options_.limits)});
    } catch (const Error& error) {
      lost(hit.shard, error.what());
    }
  }
  std::stable_sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) {
    return a.score != b.score ? a.score > b.score : a.facts["key"] < b.facts["key"];
  });
  std::vector<Json> out;
  for (std::size_t i = 0; i < std::min(options_.top, matches.size()); ++i) {
    out.push_back(match_line(i + 1, matches[i].score, matches[i].facts));
    if (queries_.numbered) out.back()["query"] = query;
  }
  return out;
}

void IndexSearch::search(std::size_t begin, std::size_t end, io::ManifestWriter& manifest) {
  begin_ = begin, end_ = end;
  std::vector<std::vector<Hit>> all;
  if (options_.exact) all = compare_all();
  std::size_t next = begin;
  share::for_each_ordered<std::size_t, std::vector<Json>>(
      slots_,
      [&]() -> std::optional<std::size_t> {
        if (next == end) return std::nullopt;
        return next++;
      },
      [&](std::size_t& query) {
        std::vector<Hit> hits = options_.exact ? std::move(all[query - begin]) : near(query);
        return lines(query, hits);
      },
      [&](std::vector<Json>& found) {
        for (const Json& line : found)
          manifest.write(line);
      },
      [](const std::vector<Json>& found) { return held_bytes(found); });
}

long IndexSearch::run(io::ManifestWriter& manifest) {
  look_for_changes();
  const std::size_t all = queries_.count(), together = options_.exact ? kQueriesTogether : all;
  if (options_.exact)
    progress_.start("shards", index_.shards().size() * ((all + together - 1) / together));
  for (std::size_t begin = 0; begin < all; begin += together)
    search(begin, std::min(all, begin + together), manifest);
  return static_cast<long>(lost_.size());
}

}  // namespace

long search_index(const SearchOptions& options, share::Slots& slots, Progress& progress,
                  io::ManifestWriter& manifest) {
  return IndexSearch(options, slots, progress).run(manifest);
}

}  // namespace vfm::columns
