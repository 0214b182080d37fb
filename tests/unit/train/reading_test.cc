// Ranks that share samples read each byte once between them, each about as many, and have the bits
// of one that reads all.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "data/latents.h"
#include "dist/threads.h"
#include "latents_fixture.h"
#include "train/data/reading_parts.h"
#include "train/data/shared_samples.h"
#include "train/diffusion/data.h"
#include "train/kind.h"
#include "train/run.h"
#include "train/step/trainer.h"

using namespace vfm;
using namespace vfm::train;

namespace {

std::int64_t bytes_of(const std::vector<ReadingPart>& parts) {
  std::int64_t sum = 0;
  for (const ReadingPart& part : parts)
    sum += part.end - part.begin;
  return sum;
}

bool same(const CleanSample& a, const CleanSample& b) {
  return a.key == b.key && a.frames == b.frames && a.height == b.height && a.width == b.width &&
         a.fps == b.fps && a.x0 == b.x0 && a.codes == b.codes && a.text == b.text;
}

/// Without latents and codes, in whose place there are zeros.
CleanSample without_values(CleanSample sample) {
  std::ranges::fill(sample.x0, 0.0f);
  std::ranges::fill(sample.codes, 0);
  return sample;
}

struct Readers {
  int ranks;
  std::string parallel;
  std::vector<int> without;  // ranks that need no values
};

Recipe reading_recipe(const std::string& type, const Readers& readers) {
  const bool codes = type == "autoregressive";
  return make_recipe(parse_yaml(
      "model: {type: " + type + ", num_attention_heads: 4, attention_head_dim: 12, num_layers: 4" +
          (codes ? ", num_key_value_heads: 4}\n" : ", max_size: [4, 8, 8]}\n") + "data: {tokens: " +
          (codes ? "256" : "64") + ", packs: 4, window: 8}\nparallel: {" + readers.parallel + "}\n",
      "reading"));
}

/// What the ranks of a group read in a step, by group, and what they make of it.
struct ReadStep {
  std::map<int, std::vector<double>> own;
  double all = 0, loss = 0;
};

/// A byte of the sample's first header: what it says no longer fits.
void damage(const std::string& tar, std::uint64_t offset) {
  std::fstream file(tar, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset) + 150);
  file.put('x');
}

/// Data of which all but the first pieces cannot be read.
class HalfGone final : public Dataset {
 public:
  explicit HalfGone(const Dataset& data) : data_(data) {}
  const data::SampleIndex& index() const override { return data_.index(); }
  const Json& info() const override { return data_.info(); }
  std::int64_t about_bytes(std::size_t i) const override { return data_.about_bytes(i); }
  bool has_pieces() const override { return true; }
  std::string read_piece(std::size_t i, std::int64_t begin, std::int64_t end) const override {
    if (begin > 0) fail("the disk is gone from byte {}", begin);
    return data_.read_piece(i, begin, end);
  }
  CleanSample put_together(std::size_t i, std::string_view bytes) const override {
    return data_.put_together(i, bytes);
  }

 private:
  void fit_model(Recipe& recipe) const override { data_.fit(recipe); }
  CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const override {
    return data_.read(i, seen);
  }
  const Dataset& data_;
};

const std::vector<Readers> kReaders = {{2, "tp: 2", {}},
                                       {3, "cp: 3, cp_kind: gather", {}},
                                       {4, "tp: 2", {}},
                                       {4, "pp: 4", {1, 2}},
                                       {8, "tp: 2, cp: 2, cp_kind: gather, pp: 2", {}}};

}  // namespace

TEST_CASE("reading is shared out in parts of about as many bytes, of mostly whole samples") {
  const Random random(3, Purpose::test, 0);
  std::uint32_t at = 0;
  int cut = 0, whole = 0;
  for (int round = 0; round < 300; ++round) {
    const int ranks = 1 + round % 9, count = 1 + round * 7 % 40;
    std::vector<std::int64_t> bytes;
    for (int i = 0; i < count; ++i)
      bytes.push_back(1000 + static_cast<std::int64_t>(1e6 * std::pow(random.uniform(at++), 4)));
    const std::int64_t all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
    for (const bool pieces : {true, false}) {
      const auto parts = share_reading(bytes, ranks, pieces);
      REQUIRE(parts.size() == static_cast<std::size_t>(ranks));
      std::vector<std::int64_t> read(bytes.size());
      for (const auto& of_rank : parts) {
        if (pieces)
          CHECK(static_cast<double>(bytes_of(of_rank)) <=
                (1 + 1 / 6.0) * static_cast<double>(all) / ranks);
        for (const ReadingPart& part : of_rank) {
          REQUIRE(part.begin == read[part.sample]);  // in order, and each byte once
          REQUIRE(part.end > part.begin);
          read[part.sample] = part.end;
          const bool in_pieces = part.end - part.begin < bytes[part.sample];
          (in_pieces ? cut : whole) += 1;
          CHECK((pieces || !in_pieces));
        }
      }
      CHECK(read == bytes);
    }
  }
  CHECK(cut > 300);
  CHECK(whole > 5 * cut);
  using Parts = std::vector<std::vector<ReadingPart>>;
  const std::vector<std::int64_t> three = {95, 100, 105};
  CHECK(share_reading(three, 3, true) == Parts{{{0, 0, 95}}, {{1, 0, 100}}, {{2, 0, 105}}});
  CHECK(share_reading(three, 2, true) ==
        Parts{{{0, 0, 95}, {1, 0, 55}}, {{1, 55, 100}, {2, 0, 105}}});
  CHECK(share_reading(three, 2, false) == Parts{{{0, 0, 95}, {1, 0, 100}}, {{2, 0, 105}}});
}

TEST_CASE("a rank reads its part of a step's bytes, and all parts are what one rank reads",
          "[long]") {
  for (const std::string type : {"dit", "autoregressive"})
    for (const int broken : {-1, 5}) {
      const TemporaryFolder folder;
      write_latents(folder.path, {.samples = 16,
                                  .broken = broken,
                                  .vocabulary = type == "autoregressive" ? 23 : 0,
                                  .mixed = true});
      const auto data = kind_of(type).open({.recipe = {}, .data = folder.path}, "train");
      const auto steps_on = [&](const Readers& readers) {
        Recipe recipe = reading_recipe(type, readers);
        data->fit(recipe);
        std::vector<ReadStep> steps(2);
        std::mutex mutex;
        dist::thread_worlds(readers.ranks, [&](dist::World& world) {
          omp_set_num_threads(1);
          Trainer trainer(recipe, *data, world);
          for (ReadStep& step : steps) {
            const StepResult result = trainer.train_step();
            const std::lock_guard lock(mutex);
            step.own[trainer.parallel().data_rank()].push_back(result.own_read_bytes);
            step.all = result.read_bytes;
            step.loss = result.loss.mean();
          }
        });
        return steps;
      };
      const std::vector<ReadStep> alone = steps_on({1, "tp: 1", {}});
      for (const Readers& readers : kReaders) {
        if (type == "autoregressive" && readers.ranks == 3) continue;
        CAPTURE(type, broken, readers.parallel);
        const std::vector<ReadStep> steps = steps_on(readers);
        for (std::size_t i = 0; i < steps.size(); ++i) {
          CHECK(steps[i].all == alone[i].all);
          CHECK(steps[i].loss == Approx(alone[i].loss).epsilon(1e-5));
          double all = 0;
          for (const auto& [group, own] : steps[i].own) {
            const double sum = std::accumulate(own.begin(), own.end(), 0.0);
            all += sum;
            // Bytes of a sample that could not be read count nowhere.
            for (const double bytes : own)
              CHECK((broken >= 0 || bytes <= 1.2 / static_cast<double>(own.size()) * sum));
          }
          CHECK(all == alone[i].own.at(0)[0]);
        }
      }
    }
}

TEST_CASE("ranks have the bits of the samples that one reads, and one verdict on what is damaged") {
  for (const std::string type : {"dit", "autoregressive"}) {
    const TemporaryFolder folder;
    write_latents(folder.path, {.samples = 16,
                                .broken = 5,
                                .vocabulary = type == "autoregressive" ? 23 : 0,
                                .mixed = true});
    damage(folder.path + "/train/a-000000.tar",
           data::LatentSet(folder.path, "train").offsets(std::vector<std::uint64_t>{9})[0]);
    const auto data = kind_of(type).open({.recipe = {}, .data = folder.path}, "train");
    for (const Readers& readers : kReaders) {
      CAPTURE(type, readers.parallel);
      Recipe recipe = reading_recipe(type, readers);
      if (type == "autoregressive" && readers.ranks == 3) continue;
      data->fit(recipe);
      // One that is cut wherever it lies, and many of which most have one reader.
      for (const std::vector<std::size_t>& samples :
           {std::vector<std::size_t>{10}, {9}, {5}, {15, 9, 5, 0, 1, 2, 3, 4, 11, 12}}) {
        int in_pieces = 0;
        std::mutex mutex;
        dist::thread_worlds(readers.ranks, [&](dist::World& world) {
          const Parallel parallel(recipe, world);
          const dist::Group& group = parallel.sharers();
          OwnReading own = read_own_part(*data, samples, {}, group.rank(), group.size());
          const auto pieces = static_cast<int>(own.pieces.size());
          const SharedSamples shared = share_samples(parallel, *data, std::move(own));
          const std::lock_guard lock(mutex);
          in_pieces += pieces;
          REQUIRE(shared.samples.size() == samples.size());
          for (std::size_t i = 0; i < samples.size(); ++i) {
            const ReadSample expected = try_to_read(*data, samples[i], {});
            CHECK(shared.samples[i].failure == expected.failure);
            CHECK(expected.failure.empty() == (samples[i] != 9 && samples[i] != 5));
            CHECK(shared.samples[i].sample.read_bytes == expected.sample.read_bytes);
            const bool needs = std::ranges::count(readers.without, world.rank()) == 0;
            CHECK(same(shared.samples[i].sample,
                       needs ? expected.sample : without_values(expected.sample)));
          }
        });
        if (samples.size() == 1) CHECK(in_pieces == readers.ranks);
      }
    }
  }
}

TEST_CASE("a piece that one rank cannot read makes the sample one that none has") {
  const TemporaryFolder folder;
  write_latents(folder.path, {.samples = 16, .mixed = true});
  const auto data = open_latents(folder.path, "train");
  const HalfGone gone(*data);
  for (const Readers& readers : kReaders) {
    CAPTURE(readers.parallel);
    Recipe recipe = reading_recipe("dit", readers);
    data->fit(recipe);
    std::mutex mutex;
    dist::thread_worlds(readers.ranks, [&](dist::World& world) {
      const Parallel parallel(recipe, world);
      const dist::Group& group = parallel.sharers();
      const SharedSamples shared =
          share_samples(parallel, gone, read_own_part(gone, {10}, {}, group.rank(), group.size()));
      const std::lock_guard lock(mutex);
      REQUIRE(shared.samples.size() == 1);
      CHECK_THAT(shared.samples[0].failure, Catch::StartsWith("the disk is gone from byte "));
      CHECK(shared.samples[0].sample.key == data->entry(10).key);
      CHECK(shared.samples[0].sample.x0.empty());
      CHECK(shared.own_bytes == 0);
    });
  }
}

TEST_CASE("made-up samples have one reader each") {
  MadeUpLatents made;
  made.sizes = {{4, 6, 6}, {1, 2, 2}, {2, 4, 4}};
  const auto data = make_up_latents(made);
  std::size_t whole = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const OwnReading own = read_own_part(*data, {0, 1, 2}, {}, rank, 4);
    whole += own.whole.size();
    CHECK(own.pieces.empty());
  }
  CHECK(whole == 3);
}
