// Writes shards of made-up vectors, for tests/bench/search_scale.sh, duplicates_scale.sh and tests
// of the command line: halves
// of length 1, in clusters as those of real encoders are. All have a direction in common (two of
// them have a cosine near 0.45); there are 200 topics, some much larger than others, and in these
// groups of 200 vectors on average, of very different sizes and widths; the numbers of a vector do
// not vary alike. A function of the arguments alone. Beside the shards it writes queries.npy: more
// vectors of the same kind, which are in no shard. PLANTED: the share of vectors that are a near
// duplicate of an earlier one instead, with a cosine between 0.97 and 1, evenly.
// Usage: many_vectors FOLDER VECTORS [DIM [QUERIES [FIRST_SHARD [PLANTED]]]]   10,000 a shard
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/npy.h"
#include "models/encoder/picture_encoder.h"
#include "shard/writer.h"
#include "share/ordered.h"
#include "share/slots.h"

namespace {

using namespace vfm;

constexpr std::size_t kShard = 10'000, kTopics = 200, kGroup = 200;
constexpr std::uint64_t kSeed = 24;

class Clusters {
 public:
  Clusters(std::size_t vectors, std::size_t dim, double planted)
      : dim_(dim),
        groups_(std::max<std::size_t>(1, vectors / kGroup)),
        planted_(planted),
        widths_(dim) {
    const auto place = Random(kSeed, Purpose::test, 1).permutation(dim);
    for (std::size_t d = 0; d < dim; ++d)
      widths_[d] = 1 / std::sqrt(1 + static_cast<float>(place[d]) / 20);
    common_ = direction(2, 0);
    for (std::size_t t = 0; t < kTopics; ++t)
      topics_.push_back(direction(3, t));
  }

  std::vector<float> vector(std::uint64_t i) const { return is_planted(i) ? near(i) : own(i); }

 private:
  static constexpr double kLeastCosine = 0.97;

  bool is_planted(std::uint64_t i) const {
    return i > 0 && Random(kSeed, Purpose::test, 8, i).uniform(0) < planted_;
  }

  /// Near to one before it that is its own.
  std::vector<float> near(std::uint64_t i) const {
    const Random random(kSeed, Purpose::test, 8, i);
    auto of = static_cast<std::uint64_t>(random.uniform(1) * static_cast<double>(i));
    while (is_planted(of))
      --of;
    const double cosine = kLeastCosine + (1 - kLeastCosine) * random.uniform(2);
    std::vector<float> vector = own(of), off = direction(9, i);
    double along = 0;
    for (std::size_t d = 0; d < dim_; ++d)
      along += double{vector[d]} * off[d];
    for (std::size_t d = 0; d < dim_; ++d)
      off[d] -= static_cast<float>(along * vector[d]);
    models::normalise(off);
    const double sine = std::sqrt(1 - cosine * cosine);
    for (std::size_t d = 0; d < dim_; ++d)
      vector[d] = static_cast<float>(cosine * vector[d] + sine * off[d]);
    return vector;
  }

  std::vector<float> own(std::uint64_t i) const {
    const Random random(kSeed, Purpose::test, 4, i);
    const auto group =
        static_cast<std::uint64_t>(std::pow(random.uniform(0), 3) * static_cast<double>(groups_));
    const auto topic = static_cast<std::size_t>(
        std::pow(Random(kSeed, Purpose::test, 5, group).uniform(0), 2) * kTopics);
    const auto width = static_cast<float>(0.25 + 0.5 * random.uniform(1));
    const std::vector<float> centre = direction(6, group);
    std::vector<float> own = direction(7, i);
    for (std::size_t d = 0; d < dim_; ++d)
      own[d] = 0.8f * common_[d] + 0.7f * topics_[topic][d] + 0.6f * centre[d] + width * own[d];
    models::normalise(own);
    return own;
  }

  std::vector<float> direction(std::uint32_t what, std::uint64_t key) const {
    std::vector<float> out(dim_);
    Random(kSeed, Purpose::test, what, key).fill_normal(out);
    for (std::size_t d = 0; d < dim_; ++d)
      out[d] *= widths_[d];
    models::normalise(out);
    return out;
  }

  std::size_t dim_;
  std::uint64_t groups_;
  double planted_;
  std::vector<float> widths_, common_;
  std::vector<std::vector<float>> topics_;
};

void write_shard(const Clusters& clusters, const std::string& folder, std::size_t dim,
                 std::size_t shard, std::size_t count) {
  shard::Writer writer(io::join_path(folder, fmt::format("{:06}.tar", shard)),
                       {.energon_index = true, .dali_index = false});
  const std::string json =
      dump_json({{"video_encoder", {{"name", "made-up"}, {"dim", dim}, {"version", 1}}}});
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t number = shard * kShard + i;
    const std::vector<float> vector = clusters.vector(number);
    writer.add(shard::Sample{
        fmt::format("v{:010}", number),
        {{"json", json},
         {"video.npy", io::make_npy_half({static_cast<std::int64_t>(dim)}, vector)}}});
  }
  writer.finish();
}

int run(int argc, char** argv) {
  const std::string folder = argv[1];
  const std::size_t vectors = std::stoul(argv[2]);
  const std::size_t dim = argc > 3 ? std::stoul(argv[3]) : 768;
  const std::size_t queries = argc > 4 ? std::stoul(argv[4]) : 1000;
  const std::size_t first = argc > 5 ? std::stoul(argv[5]) : 0;
  const double planted = argc > 6 ? std::stod(argv[6]) : 0;
  // The clusters do not depend on how many shards are added later.
  const Clusters clusters(first > 0 ? first * kShard : vectors, dim, planted);
  io::make_directories(folder);
  share::Slots slots(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  std::size_t next = 0;
  share::for_each_ordered<std::size_t, bool>(
      slots,
      [&]() -> std::optional<std::size_t> {
        if (next * kShard >= vectors) return std::nullopt;
        return next++;
      },
      [&](std::size_t& shard) {
        write_shard(clusters, folder, dim, first + shard,
                    std::min(kShard, vectors - shard * kShard));
        return true;
      },
      [](bool&) {});
  if (queries == 0) return 0;
  std::vector<float> values;
  for (std::size_t q = 0; q < queries; ++q) {
    const std::vector<float> one = clusters.vector((std::uint64_t{1} << 40) + q);
    values.insert(values.end(), one.begin(), one.end());
  }
  io::write_file(io::join_path(folder, "queries.npy"),
                 io::make_npy_half(
                     {static_cast<std::int64_t>(queries), static_cast<std::int64_t>(dim)}, values));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: many_vectors FOLDER VECTORS [DIM [QUERIES [FIRST_SHARD [PLANTED]]]]\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "many_vectors: %s\n", error.what());
    return 1;
  }
}
