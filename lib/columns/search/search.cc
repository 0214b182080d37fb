// SPDX-License-Identifier: Apache-2.0
#include "columns/search/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/encoder_identity.h"
#include "base/error.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "columns/column_job.h"
#include "columns/search/file_query.h"
#include "columns/search/match_facts.h"
#include "columns/search/stored_vectors.h"
#include "curate/vectors/look.h"
#include "io/file.h"
#include "io/manifest.h"
#include "io/npy.h"
#include "shard/columns.h"
#include "shard/input_totals.h"
#include "shard/media_members.h"
#include "shard/reader.h"
#include "shard/shard_input.h"
#include "shard/writer.h"
#include "share/ordered.h"
#include "text/encoder.h"

namespace vfm::columns {
namespace {

/// A word of a caption with at least this cosine counts as the query's word. The same word in
/// another context has 0.85.
constexpr double kSameWord = 0.6;

struct Match {
  std::vector<float> scores;  // one for each word of the query, or one for a vector of a clip
  double score = 0;
  Json encoder;  // encoder_identity() of the vector
  std::string key;
  std::string base;  // tar with the clip, and the sample's row in it
  std::int64_t row = 0;
  Json json;  // printed fields besides rank and score
};

struct Found {
  std::vector<Match> matches;
  std::vector<io::Fault> errors;
};

std::size_t found_weight(const Found& found) {
  std::size_t bytes = held_bytes(found.errors) + found.matches.size() * sizeof(Match);
  for (const Match& match : found.matches)
    bytes += held_bytes(match.scores) + held_bytes(match.encoder) + match.key.size() +
             match.base.size() + held_bytes(match.json);
  return bytes;
}

/// A text query, encoded by each encoder that samples name.
class TextQuery {
 public:
  TextQuery(std::string text, std::optional<std::string> prompt)
      : text_(std::move(text)), prompt_(std::move(prompt)) {}

  /// Returns the cosine of each query word with the nearest of the sample's words.
  std::vector<float> scores(const Json& config, const std::vector<float>& tokens) {
    const text::TokenEmbeddings& query = embedded(config);
    const auto dim = static_cast<std::size_t>(query.dim);
    std::vector<float> out;
    for (std::size_t q = 0; q < static_cast<std::size_t>(query.tokens); ++q) {
      double best = -1;
      for (std::size_t t = 0; t + dim <= tokens.size(); t += dim)
        best = std::max(best, cosine(&query.values[q * dim], &tokens[t], dim));
      out.push_back(static_cast<float>(best));
    }
    return out;
  }

  /// Returns the query's unit vector by a model of texts and pictures, to compare with clips.
  const std::vector<float>& vector(const Json& config, const std::string& key) {
    const std::lock_guard lock(mutex_);
    const std::string name = dump_json(config);
    auto at = beside_clips_.find(name);
    if (at == beside_clips_.end())
      at = beside_clips_
               .emplace(name, encode_text_beside_clips(prompt_.value_or("") + text_, config, key))
               .first;
    return at->second;  // references to map nodes stay valid
  }

 private:
  static double cosine(const float* a, const float* b, std::size_t n) {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < n; ++i) {
      ab += double{a[i]} * b[i];
      aa += double{a[i]} * a[i];
      bb += double{b[i]} * b[i];
    }
    return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
  }

  /// Encodes the query once for each config with its folder. If the folder were ignored, a shard
  /// whose encoder's folder is missing could be searched only after other shards.
  const text::TokenEmbeddings& embedded(const Json& config) {
    const std::lock_guard lock(mutex_);
    const std::string name = dump_json(config);
    auto at = queries_.find(name);
    if (at == queries_.end())
      at = queries_.emplace(name, query_encoder(config, prompt_)->encode(text_)).first;
    return at->second;  // references to map nodes stay valid
  }

  std::string text_;
  std::optional<std::string> prompt_;
  std::mutex mutex_;
  std::map<std::string, text::TokenEmbeddings> queries_;
  std::map<std::string, std::vector<float>> beside_clips_;
};

class Searcher {
 public:
  explicit Searcher(const SearchOptions& options)
      : limits_(options.limits), text_(options.query, options.query_prompt) {
    const std::string& query = options.query;
    if (io::file_exists(query) && shard::is_media_name(query)) {
      refuse_prompt_before_file(options);
      file_.emplace(query, options.hardware);
    } else if (shard::is_media_name(query) && query.find(' ') == std::string::npos) {
      fail_usage("cannot open '{}': there is no such video or picture", query);
    } else if (!has_words(query)) {
      fail_usage("the text to search for has no words");
    }
  }

  Found search(io::Record& record) {
    Found found;
    const std::string path = get_string(record.json, "path").value_or(record.where);
    try {
      shard::complete_shard(record);
      shard::JoinedReader reader(searched_tars(record), limits_);
      shard::Sample sample;
      std::size_t without = 0;
      const auto& columns = record.json->at("columns");
      const std::string base = get_string(columns, "clip").value_or(path);
      for (std::int64_t row = 0; reader.next(sample); ++row) {
        check_stop();
        if (auto match = compare(sample, record.path())) {
          match->row = row;
          match->base = base;
          found.matches.push_back(std::move(*match));
        } else {
          ++without;
        }
      }
      found.errors = reader.faults();
      if (without > 0 && found.matches.empty())
        fail("has no {}", !file_ ? "text embeddings; run vfm-caption, then vfm-embed on it first"
                                 : "video embeddings; run vfm-embed on it first");
      log_debug("{}: {} of {} samples searched", path, found.matches.size(),
                found.matches.size() + without);
    } catch (const Error& error) {
      found = {};
      found.errors.emplace_back(path, error);
    }
    return found;
  }

 private:
  /// The query's vector must have length 1.
  static float clip_score(const std::vector<float>& query, const std::string& npy,
                          const std::string& key) {
    const std::vector<float> clip = io::npy_floats(npy, key + ".video.npy");
    if (clip.size() != query.size())
      fail("{}.video.npy has {} numbers, its encoder makes {}", key, clip.size(), query.size());
    return static_cast<float>(stored_cosine(query, clip));
  }

  std::optional<Match> compare(const shard::Sample& sample, const std::string& path) {
    const std::string where = fmt::format("{}.json of '{}'", sample.key, path);
    const std::string* json = sample.find("json");
    const Json facts = json ? parse_json(*json, where) : Json::object();
    Match match;
    const std::vector<float>* query = nullptr;  // to compare with the clip's vector
    if (file_) {
      const std::string* vector = sample.find("video.npy");
      if (vector == nullptr) return std::nullopt;
      const auto config = facts.find("video_encoder");
      match.encoder = config == facts.end() ? curate::look_config() : *config;
      query = &file_->vector(match.encoder, sample.key);
      match.scores = {clip_score(*query, *vector, sample.key)};
      match.encoder = encoder_identity(match.encoder);
    } else if (const std::string* tokens = sample.find("text.npy")) {
      const auto config = facts.find("text_encoder");
      if (config == facts.end()) fail("{} has no 'text_encoder'", where);
      match.scores = text_.scores(*config, io::npy_floats(*tokens, sample.key + ".text.npy"));
      match.encoder = encoder_identity(*config);
    } else {
      const std::string* vector = sample.find("video.npy");
      const auto config = facts.find("video_encoder");
      if (vector == nullptr || config == facts.end() || !has_texts(*config)) return std::nullopt;
      query = &text_.vector(*config, sample.key);
      match.scores = {clip_score(*query, *vector, sample.key)};
      match.encoder = encoder_identity(*config);
    }
    match.key = sample.key;
    match.json = {{"key", sample.key}, {"path", path}};
    if (const std::string* txt = sample.find("txt")) match.json["caption"] = *txt;
    add_facts(match.json, facts);
    if (query) add_window(match.json, sample, facts, *query);
    return match;
  }

  shard::ReadLimits limits_;
  std::optional<FileQuery> file_;  // nullopt for a text query
  TextQuery text_;
};

/// Removes matches of other encoders than the first match's, because their scores cannot be
/// compared. Warns about the shard. Returns the number of removed matches.
long drop_other_encoders(std::vector<Match>& found, const std::vector<Match>& before) {
  if (found.empty()) return 0;
  const Json first = before.empty() ? found.front().encoder : before.front().encoder;
  Json other;
  std::string path;
  const auto others = std::erase_if(found, [&](const Match& match) {
    if (match.encoder == first) return false;
    other = match.encoder, path = match.json["path"];
    return true;
  });
  if (others > 0)
    log_warning("{}: {} samples were embedded by {}, the first ones by {}: search them apart", path,
                others, dump_json(other), dump_json(first));
  // Only the first match's encoder is needed later.
  for (std::size_t i = before.empty() ? 1 : 0; i < found.size(); ++i)
    found[i].encoder = nullptr;
  return static_cast<long>(others);
}

/// Sets scores to weighted means over words. Rare words have higher weights.
void weigh(std::vector<Match>& matches) {
  if (matches.empty()) return;
  const std::size_t words = matches.front().scores.size();
  std::vector<double> weights(words, 1.0);
  double total = 0;
  for (std::size_t w = 0; w < words; ++w) {
    const auto with = std::count_if(matches.begin(), matches.end(), [&](const Match& match) {
      return match.scores[w] >= kSameWord;
    });
    weights[w] =
        std::log(1 + static_cast<double>(matches.size()) / (static_cast<double>(with) + 0.5));
    total += weights[w];
  }
  for (Match& match : matches) {
    for (std::size_t w = 0; w < words; ++w)
      match.score += weights[w] * double{match.scores[w]};
    match.score /= total;
  }
}

void print(std::vector<Match>& matches, std::size_t top, io::ManifestWriter& manifest) {
  const auto better = [](const Match& a, const Match& b) {
    return a.score != b.score ? a.score > b.score : a.key < b.key;
  };
  const auto count = static_cast<std::ptrdiff_t>(std::min(top, matches.size()));
  std::partial_sort(matches.begin(), matches.begin() + count, matches.end(), better);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    Match& match = matches[static_cast<std::size_t>(i)];
    add_clip_facts(match.json, match.key, match.base, match.row);
    manifest.write(match_line(static_cast<std::size_t>(i) + 1, match.score, match.json));
  }
}

}  // namespace

long search(const SearchOptions& options, share::Slots& slots, Progress& progress,
            io::ManifestWriter& manifest) {
  Searcher searcher(options);
  progress.start("shards", shard::count_shards(options.inputs));
  std::vector<io::Fault> bad;
  shard::ShardInput reader(options.inputs,
                           [&](io::Fault fault) { bad.push_back(std::move(fault)); });
  std::vector<Match> matches;
  long errors = 0;
  bool any = false;
  const auto next = [&]() -> std::optional<io::Record> {
    for (;;) {
      auto record = reader.next();
      if (!record || record->kind == "shard") return record;
      bad.push_back({get_string(record->json, "path").value_or(record->where),
                     fmt::format("{} is a '{}', not a shard; a text of several words to search for "
                                 "stands in quotes",
                                 record->where, record->kind)});
    }
  };
  share::for_each_ordered<io::Record, Found>(
      slots, next, [&](io::Record& record) { return searcher.search(record); },
      [&](Found& found) {
        any = true;
        for (const io::Fault& fault : found.errors)
          log_warning("{}: {}", fault.input, fault.message);
        errors += static_cast<long>(found.errors.size());
        errors += drop_other_encoders(found.matches, matches);
        std::move(found.matches.begin(), found.matches.end(), std::back_inserter(matches));
        progress.add();
      },
      found_weight);
  for (const io::Fault& fault : bad)
    log_warning("{}: {}", fault.input, fault.message);
  errors += static_cast<long>(bad.size());
  if (!any && errors == 0) {
    reader.streams().check_whole("nothing came that could be searched");
    fail("the input has no shard to search; name shards that vfm-embed has embedded");
  }
  weigh(matches);
  print(matches, options.top, manifest);
  reader.streams().check_whole("only what came is searched");
  return errors;
}

}  // namespace vfm::columns
