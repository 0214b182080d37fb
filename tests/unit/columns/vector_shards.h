// Shards of vectors that a test chooses, and indexes of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/philox.h"
#include "columns/search/index.h"
#include "columns/search/index_search.h"
#include "io/npy.h"
#include "support/heard_log.h"
#include "unit/columns/column_cases.h"

namespace vfm::columns {

using Vector = std::vector<float>;

inline Json made_encoder() {
  return {{"name", "made"}, {"hash", "1a"}, {"path", "here"}};
}

/// One sample with a vector.
inline shard::Sample vector_sample(const std::string& key, const Vector& vector,
                                   Json facts = {{"video_encoder", made_encoder()}}) {
  return {key,
          {{"json", dump_json(facts)},
           {"video.npy", io::make_npy_half({static_cast<std::int64_t>(vector.size())}, vector)}}};
}

/// A vector of `dim` numbers, of which one is not 0.
inline Vector axis(std::size_t number, std::size_t dim = 16, float length = 1) {
  Vector out(dim);
  out[number] = length;
  return out;
}

/// About of length 1, in no direction more than in another.
inline std::vector<Vector> random_vectors(std::size_t count, std::uint32_t what,
                                          std::size_t dim = 16) {
  std::vector<Vector> out(count, Vector(dim));
  for (std::size_t i = 0; i < count; ++i) {
    Random(7, Purpose::test, what, static_cast<std::uint32_t>(i)).fill_normal(out[i]);
    double length = 0;
    for (const float value : out[i])
      length += double{value} * value;
    for (float& value : out[i])
      value = static_cast<float>(value / std::sqrt(length));
  }
  return out;
}

/// Keys "NAME0000" and so on.
inline void write_vectors(const std::string& path, const std::string& name,
                          const std::vector<Vector>& vectors) {
  std::vector<shard::Sample> samples;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const std::string number = std::to_string(10000 + i).substr(1);
    samples.push_back(vector_sample(name + number, vectors[i]));
  }
  write_tar(path, samples);
}

struct Built {
  long errors = 0;
  Json record;
  std::string warnings;
  std::uint64_t done = 0, total = 0;
};

inline Built build(const std::string& index, const std::vector<std::string>& inputs,
                   bool force = false, VectorKind kind = VectorKind::video, int threads = 1) {
  Run run(threads);
  const HeardLog lines;
  IndexOptions options;
  options.path = index;
  options.inputs = inputs;
  options.force = force;
  options.kind = kind;
  Built built;
  built.errors = build_index(options, run.slots, run, run.manifest);
  built.record = run.records().at(0);
  built.warnings = lines.text();
  built.done = run.done, built.total = run.total;
  return built;
}

struct FoundMatches {
  long errors = 0;
  std::vector<Json> matches;
  std::string warnings;
  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    for (const Json& match : matches)
      all.push_back(match["key"]);
    return all;
  }
};

inline FoundMatches find_in(const std::string& index, const std::string& query, std::size_t top,
                            bool exact, int threads = 1) {
  Run run(threads);
  const HeardLog lines;
  SearchOptions options;
  options.index = index;
  options.query = query;
  options.top = top;
  options.exact = exact;
  FoundMatches found;
  found.errors = search_index(options, run.slots, run, run.manifest);
  found.matches = run.records();
  found.warnings = lines.text();
  return found;
}

}  // namespace vfm::columns
