// SPDX-License-Identifier: Apache-2.0
#include "columns/search/match_facts.h"

#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "columns/column_job.h"
#include "columns/search/stored_vectors.h"
#include "io/file.h"
#include "io/npy.h"
#include "shard/columns.h"
#include "shard/tar_file.h"

namespace vfm::columns {
namespace {

double rounded_score(double score) {
  return std::round(score * 1e4) / 1e4;
}

/// The key is empty if the sample's first header is a folder's. Then the sample is read.
std::string key_of(const shard::IndexedReader& rows, std::int64_t i) {
  const std::string key = rows.key(i);
  return shard::column_key(key.empty() ? rows.read(i).key : key);
}

/// Returns the sample with this key. Tries `row` first, because tars usually have the same samples.
std::optional<shard::Sample> sample_of(const std::string& tar, const std::string& key,
                                       std::int64_t row, const shard::ReadLimits& limits) {
  std::optional<shard::IndexedReader> rows;
  try {
    rows.emplace(open_rows(tar, limits));
  } catch (const Error&) {  // a compressed tar is read from its begin
    shard::StreamReader reader(tar, limits);
    for (shard::Sample sample; reader.next(sample);)
      if (shard::column_key(sample.key) == key) return sample;
    return std::nullopt;
  }
  if (row < rows->samples() && key_of(*rows, row) == key) return rows->read(row);
  for (std::int64_t i = 0; i < rows->samples(); ++i)
    if (key_of(*rows, i) == key) return rows->read(i);
  return std::nullopt;
}

}  // namespace

std::vector<std::string> searched_tars(const io::Record& record) {
  const Json& columns = record.json->at("columns");
  return columns.contains("embed") ? tars_without(record, {"clip"}) : io::column_tars(record);
}

void add_facts(Json& line, const Json& facts) {
  for (const char* name : {"caption", "source", "begin", "end"})
    if (const auto value = facts.find(name); value != facts.end() && !line.contains(name))
      line[name] = *value;
}

void add_clip_facts(Json& line, const std::string& key, const std::string& tar, std::int64_t row) {
  if (line.contains("source") || !shard::has_index(tar)) return;
  try {
    const shard::Sample sample = shard::IndexedReader(tar).read(row);
    const std::string* json = sample.find("json");
    if (json && shard::column_key(sample.key) == key) add_facts(line, parse_json(*json, key));
  } catch (const Error& error) {
    log_info("{}: {}", tar, error.what());
  }
}

void add_window(Json& line, const shard::Sample& sample, const Json& facts,
                const std::vector<float>& query) {
  const std::string* npy = sample.find("windows.npy");
  if (npy == nullptr) return;
  const std::string where = sample.key + ".windows.npy";
  const std::vector<float> values = io::npy_floats(*npy, where);
  const auto windows = facts.find("video_windows");
  const Json begins = windows != facts.end() && windows->is_object() && windows->contains("begin")
                          ? windows->at("begin")
                          : Json();
  if (query.empty() || !begins.is_array() || values.size() != begins.size() * query.size())
    fail("{} has {} numbers, which are not {} for each of the windows in its json", where,
         values.size(), query.size());
  std::size_t best = 0;
  double score = -2;
  for (std::size_t k = 0; k < begins.size(); ++k) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(k * query.size());
    const double cosine =
        stored_cosine(query, {at, at + static_cast<std::ptrdiff_t>(query.size())});
    if (cosine > score) best = k, score = cosine;
  }
  if (begins.empty()) return;
  Json window = {{"number", best}, {"begin", begins[best]}};
  if (best + 1 < begins.size())
    window["end"] = begins[best + 1];
  else if (const auto seconds = facts.find("seconds");
           seconds != facts.end() && seconds->is_number())
    window["end"] = *seconds;
  window["score"] = rounded_score(score);
  line["window"] = std::move(window);
}

Json match_facts(const io::Record& record, std::int64_t row, VectorKind kind,
                 const std::vector<float>& query, const shard::ReadLimits& limits) {
  const std::string key = shard::column_key(open_rows(vectors_tar(record), limits).read(row).key);
  Json line = {{"key", key}, {"path", record.path()}};
  Json facts = Json::object();
  for (const std::string& tar : searched_tars(record)) {
    const auto sample = sample_of(tar, key, row, limits);
    if (!sample) continue;
    if (const std::string* txt = sample->find("txt")) line["caption"] = *txt;
    const std::string* json = sample->find("json");
    if (json == nullptr) continue;
    const Json more = parse_json(*json, key);
    if (!more.is_object()) continue;
    facts.update(more);
    if (kind == VectorKind::video) add_window(line, *sample, facts, query);
  }
  add_facts(line, facts);
  const Json& columns = record.json->at("columns");
  add_clip_facts(line, key, get_string(columns, "clip").value_or(record.path()), row);
  return line;
}

Json match_line(std::size_t rank, double score, const Json& facts) {
  Json line = {{"kind", "match"}, {"rank", rank}, {"score", rounded_score(score)}};
  line.update(facts);
  return line;
}

}  // namespace vfm::columns
