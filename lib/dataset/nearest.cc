// SPDX-License-Identifier: Apache-2.0
#include "dataset/nearest.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/half.h"
#include "share/ordered.h"

namespace vfm::dataset {
namespace {

constexpr std::size_t kPortion = std::size_t{16} << 20;  // bytes of vectors in memory
constexpr std::size_t kRowsAtOnce = 512;                 // vectors per job
constexpr std::size_t kLanes = 16;

/// Pads the vector with zeros to a multiple of kLanes.
void floats_of(std::string_view halves, std::vector<float>& out) {
  std::vector<std::uint16_t> bits(halves.size() / sizeof(std::uint16_t));
  std::memcpy(bits.data(), halves.data(), bits.size() * sizeof bits[0]);
  out.assign((bits.size() + kLanes - 1) / kLanes * kLanes, 0.0f);
  halves_to_floats(bits, std::span(out).first(bits.size()));
}

/// Adds in a fixed order, so that the result is the same on all processors.
float dot(const std::vector<float>& a, const std::vector<float>& b) {
  std::array<float, kLanes> sums{};
  for (std::size_t i = 0; i < a.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      sums[lane] += a[i + lane] * b[i + lane];
  float sum = 0;
  for (const float lane : sums)
    sum += lane;
  return sum;
}

struct NearQuery {
  std::uint32_t number = 0;
  std::uint64_t encoder = 0;
  std::vector<float> vector;  // Empty if the sample has no vector.
};

struct NearRow {
  std::string key, halves;
  std::uint32_t number = 0;
  std::uint64_t encoder = 0;
};

using NearList = std::vector<NearSample>;

void keep_near(NearList& list, std::size_t most, NearSample one) {
  const auto nearer = [](const NearSample& a, const NearSample& b) {
    return a.cosine != b.cosine ? a.cosine > b.cosine : a.key < b.key;
  };
  if (list.size() == most && !nearer(one, list.back())) return;
  list.insert(std::upper_bound(list.begin(), list.end(), one, nearer), std::move(one));
  if (list.size() > most) list.pop_back();
}

std::vector<NearList> compare(std::span<const NearRow> rows, const std::vector<NearQuery>& queries,
                              std::size_t most) {
  std::vector<NearList> found(queries.size());
  std::vector<float> floats;
  for (const NearRow& row : rows) {
    floats_of(row.halves, floats);
    for (std::size_t q = 0; q < queries.size(); ++q) {
      const NearQuery& query = queries[q];
      // The sizes differ only if the hashes of two encoders collide.
      if (query.encoder != row.encoder || query.number == row.number ||
          query.vector.size() != floats.size())
        continue;
      keep_near(found[q], most, {dot(query.vector, floats), row.key, row.number});
    }
  }
  return found;
}

std::vector<NearQuery> queries_of(const ItemStore& items, const std::vector<std::uint32_t>& numbers,
                                  const VectorOfNotes& vector_of, std::uint64_t& vectors) {
  std::map<std::uint32_t, NearQuery> by_number;
  for (const std::uint32_t number : numbers)
    by_number[number].number = number;
  vectors = 0;
  items.for_each_noted([&](std::uint32_t number, const std::string&, std::string_view notes) {
    const NotedVector vector = vector_of(notes);
    vectors += !vector.halves.empty();
    const auto found = by_number.find(number);
    if (found == by_number.end() || vector.halves.empty()) return;
    found->second.encoder = vector.encoder;
    floats_of(vector.halves, found->second.vector);
  });
  std::vector<NearQuery> queries;
  for (const std::uint32_t number : numbers)
    queries.push_back(by_number[number]);
  return queries;
}

}  // namespace

std::vector<NearList> nearest_samples(const ItemStore& items,
                                      const std::vector<std::uint32_t>& queries, std::size_t most,
                                      const VectorOfNotes& vector_of, std::uint64_t& vectors,
                                      share::Slots& slots) {
  const std::vector<NearQuery> asked = queries_of(items, queries, vector_of, vectors);
  std::vector<NearList> nearest(queries.size());
  if (vectors == 0) return nearest;
  std::vector<NearRow> rows;
  std::size_t bytes = 0;
  const auto flush = [&] {
    std::size_t next = 0;
    share::for_each_ordered<std::span<const NearRow>, std::vector<NearList>>(
        slots,
        [&]() -> std::optional<std::span<const NearRow>> {
          if (next == rows.size()) return std::nullopt;
          const std::size_t begin = next;
          next = std::min(rows.size(), next + kRowsAtOnce);
          return std::span<const NearRow>(rows).subspan(begin, next - begin);
        },
        [&](std::span<const NearRow>& some) { return compare(some, asked, most); },
        [&](std::vector<NearList>& found) {
          for (std::size_t q = 0; q < found.size(); ++q)
            for (NearSample& one : found[q])
              keep_near(nearest[q], most, std::move(one));
        });
    rows.clear();
    bytes = 0;
  };
  items.for_each_noted([&](std::uint32_t number, const std::string& key, std::string_view notes) {
    const NotedVector vector = vector_of(notes);
    if (vector.halves.empty()) return;
    rows.push_back({key, std::string(vector.halves), number, vector.encoder});
    bytes += sizeof(NearRow) + key.size() + vector.halves.size();
    if (bytes >= kPortion) flush();
  });
  flush();
  return nearest;
}

}  // namespace vfm::dataset
