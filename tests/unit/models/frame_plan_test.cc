// Parts of a pack that end at frames: against every other way to cut, and token by token.
// SPDX-License-Identifier: Apache-2.0
#include "nn/frame_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

#include "base/philox.h"

using namespace vfm;
using nn::FramePlan;
using nn::FrameWork;

namespace {

using Numbers = std::vector<std::int64_t>;

struct Draw {
  explicit Draw(std::uint64_t seed) : random(3, Purpose::test, seed, 0) {}
  int below(int n) { return static_cast<int>(random.uniform(next++) * n); }
  Random random;
  std::uint64_t next = 0;
};

// A few samples, images among them.
std::vector<ops::TokenGrid> some_grids(Draw& draw, int most_samples, int most_frames) {
  std::vector<ops::TokenGrid> grids;
  for (int n = 1 + draw.below(most_samples); n > 0; --n)
    grids.push_back({draw.below(3) == 0 ? 1 : 1 + draw.below(most_frames), 1 + draw.below(4),
                     1 + draw.below(5)});
  return grids;
}

// The heaviest part of every way to cut, the lightest of them.
std::int64_t best_of_all(const Numbers& weights, const Numbers& base) {
  std::int64_t best = -1;
  const std::function<void(std::size_t, std::size_t, std::int64_t)> cut =
      [&](std::size_t part, std::size_t at, std::int64_t heaviest) {
        if (part == base.size()) {
          if (at == weights.size() && (best < 0 || heaviest < best)) best = heaviest;
          return;
        }
        std::int64_t weight = base[part];
        for (std::size_t end = at; end <= weights.size(); ++end) {
          cut(part + 1, end, std::max(heaviest, weight));
          if (end < weights.size()) weight += weights[end];
        }
      };
  cut(0, 0, 0);
  return best;
}

// What a token costs where its frame is.
std::int64_t frame_cost(const ops::TokenGrid& g, const FrameWork& work) {
  const std::int64_t places = std::int64_t{g.height} * g.width;
  return places * (work.in_frames + places + (work.queries_stay ? g.frames * places : 0));
}

// The number of a place, by looking for it.
int number_of(const FramePlan& plan, const ops::TokenGrid& g, int place) {
  const int places = g.height * g.width;
  for (int number = 0; number < places; ++number)
    if (nn::numbered_place(number, places, plan.sections) == place) return number;
  FAIL("place " << place << " of " << places << " has no number");
  return -1;
}

// The rank of each token by the plan's frames, and by its places. -1: none.
struct Owners {
  std::vector<int> of_frames, of_places;
};
Owners owners_of(const FramePlan& plan) {
  Owners owners;
  for (std::size_t i = 0; i < plan.grids.size(); ++i) {
    const ops::TokenGrid& g = plan.grids[i];
    for (int frame = 0; frame < g.frames; ++frame)
      for (int place = 0; place < g.height * g.width; ++place) {
        owners.of_frames.push_back(-1);
        owners.of_places.push_back(-1);
        for (int rank = 0; rank < plan.ranks(); ++rank) {
          const auto has = [&](const nn::GridRange& range, int at) {
            return at >= range.begin && at < range.end;
          };
          const auto r = static_cast<std::size_t>(rank);
          if (has(plan.frames[r][i], frame)) {
            CHECK(owners.of_frames.back() == -1);
            owners.of_frames.back() = rank;
          }
          if (has(plan.places[r][i], number_of(plan, g, place))) {
            CHECK(owners.of_places.back() == -1);
            owners.of_places.back() = rank;
          }
        }
        CHECK(owners.of_frames.back() >= 0);
        CHECK(owners.of_places.back() >= 0);
      }
  }
  return owners;
}

}  // namespace

TEST_CASE("the heaviest part of a cut is as light as of all cuts there are") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw(seed);
    const int things = draw.below(9), parts = 1 + draw.below(4);
    const bool with_base = draw.below(2) == 0;
    Numbers weights, until{0}, base;
    for (int i = 0; i < things; ++i) {
      weights.push_back(1 + draw.below(draw.below(2) == 0 ? 3 : 40));
      until.push_back(until.back() + weights.back());
    }
    for (int part = 0; part < parts; ++part)
      base.push_back(with_base ? draw.below(60) : 0);
    INFO("seed " << seed);
    const Numbers ends = nn::even_ends(until, base, !with_base);
    REQUIRE(ends.size() == base.size());
    CHECK(ends.back() == things);
    std::int64_t heaviest = 0, begin = 0, empty = 0;
    for (std::size_t part = 0; part < ends.size(); ++part) {
      REQUIRE(ends[part] >= begin);
      empty += ends[part] == begin ? 1 : 0;
      heaviest = std::max(heaviest, base[part] + until[static_cast<std::size_t>(ends[part])] -
                                        until[static_cast<std::size_t>(begin)]);
      begin = ends[part];
    }
    CHECK(heaviest == best_of_all(weights, base));
    if (!with_base) CHECK(empty == std::max(0, parts - things));
  }
}

TEST_CASE("parts within the limit are near their mean") {
  const Numbers until{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, none(4, 0);
  CHECK(nn::even_ends(until, none, true) == Numbers{2, 4, 7, 10});
  CHECK(nn::even_ends(until, {{8, 0, 0, 4}}, false) == Numbers{0, 4, 9, 10});
}

TEST_CASE("every token has one rank in frames and one in pixels, and what moves is counted") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Draw draw(seed);
    const std::vector<ops::TokenGrid> grids = some_grids(draw, 5, 6);
    const int ranks = 1 + draw.below(6);
    const FrameWork work{1 + draw.below(300), 1 + draw.below(100), draw.below(2) == 0};
    INFO("seed " << seed << ", " << ranks << " ranks");
    const FramePlan plan(grids, ranks, work, 1 + draw.below(3));
    REQUIRE(plan.ranks() == ranks);
    const Owners owners = owners_of(plan);
    std::vector<Numbers> moved(static_cast<std::size_t>(ranks),
                               Numbers(static_cast<std::size_t>(ranks), 0));
    for (std::size_t token = 0; token < owners.of_frames.size(); ++token)
      ++moved[static_cast<std::size_t>(owners.of_frames[token])]
             [static_cast<std::size_t>(owners.of_places[token])];
    for (int rank = 0; rank < ranks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      for (int to = 0; to < ranks; ++to)
        CHECK(plan.moved(rank, to) == moved[r][static_cast<std::size_t>(to)]);
      CHECK(plan.tokens_of_frames(rank) ==
            std::count(owners.of_frames.begin(), owners.of_frames.end(), rank));
      std::vector<int> by_rows(owners.of_frames.size(), 0);
      for (const ops::RowRange& range : plan.rows(rank))
        for (std::int64_t row = range.begin; row < range.end; ++row)
          by_rows[static_cast<std::size_t>(row)] = 1;
      Numbers pixels = plan.pixel_rows(rank);
      CHECK(std::ssize(pixels) == plan.tokens_of_places(rank));
      std::set<std::int64_t> set(pixels.begin(), pixels.end());
      REQUIRE(set.size() == pixels.size());
      for (std::size_t token = 0; token < by_rows.size(); ++token) {
        CHECK(by_rows[token] == (owners.of_frames[token] == rank ? 1 : 0));
        CHECK(set.contains(static_cast<std::int64_t>(token)) == (owners.of_places[token] == rank));
      }
    }
  }
}

TEST_CASE("frames are dealt out by their work, as evenly as frames in a row can be") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Draw draw(seed);
    const std::vector<ops::TokenGrid> grids = some_grids(draw, 3, 4);
    const int ranks = 1 + draw.below(4);
    const FrameWork work{1 + draw.below(100), 10, draw.below(2) == 0};
    INFO("seed " << seed << ", " << ranks << " ranks");
    const FramePlan plan(grids, ranks, work);
    Numbers weights;
    for (const ops::TokenGrid& g : grids)
      weights.insert(weights.end(), static_cast<std::size_t>(g.frames), frame_cost(g, work));
    std::int64_t heaviest = 0;
    int empty = 0;
    for (const auto& samples : plan.frames) {
      std::int64_t weight = 0, count = 0;
      for (std::size_t i = 0; i < grids.size(); ++i) {
        weight += samples[i].count() * frame_cost(grids[i], work);
        count += samples[i].count();
      }
      heaviest = std::max(heaviest, weight);
      empty += count == 0 ? 1 : 0;
    }
    CHECK(heaviest == best_of_all(weights, Numbers(static_cast<std::size_t>(ranks), 0)));
    CHECK(empty == std::max(0, ranks - static_cast<int>(weights.size())));
    const std::int64_t all = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    CHECK(heaviest <= all / ranks + *std::max_element(weights.begin(), weights.end()));
  }
}

TEST_CASE("what one rank has whole stays, and pixels are dealt out beside it") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Draw draw(seed);
    const std::vector<ops::TokenGrid> grids = some_grids(draw, 4, 5);
    const int ranks = 2 + draw.below(3);
    const FrameWork work{50, 20, true};
    INFO("seed " << seed << ", " << ranks << " ranks");
    const FramePlan plan(grids, ranks, work);
    Numbers base(static_cast<std::size_t>(ranks), 0), made = base;
    std::int64_t dealt = 0, largest = 0;
    for (std::size_t i = 0; i < grids.size(); ++i) {
      const std::int64_t places = std::int64_t{grids[i].height} * grids[i].width,
                         cost = grids[i].frames * (work.in_pixels + grids[i].frames);
      bool stays = false;
      for (std::size_t r = 0; r < base.size(); ++r) {
        made[r] += plan.places[r][i].count() * cost;
        if (plan.frames[r][i].count() != grids[i].frames) continue;
        stays = true;
        base[r] += places * cost;
        CHECK(plan.places[r][i] == nn::GridRange{0, places});
      }
      CHECK((stays || grids[i].frames > 1));
      if (!stays) dealt += places * cost, largest = std::max(largest, cost);
    }
    // Within one place of the level that water would have.
    std::int64_t level = *std::ranges::max_element(base);
    const auto room = [&](std::int64_t to) {
      std::int64_t sum = 0;
      for (const std::int64_t b : base)
        sum += std::max(std::int64_t{0}, to - b);
      return sum;
    };
    while (room(level) < dealt)
      ++level;
    CHECK(*std::ranges::max_element(made) <= level + largest);
  }
}

TEST_CASE("places are numbered across the sections that tp makes of a frame") {
  std::vector<std::int64_t> places;
  for (int number = 0; number < 8; ++number)
    places.push_back(nn::numbered_place(number, 8, 3));
  CHECK(places == Numbers{0, 3, 6, 1, 4, 7, 2, 5});  // 0 1 2, 3 4 5, 6 7
  for (int number = 0; number < 5; ++number)
    CHECK(nn::numbered_place(number, 5, 1) == number);
  CHECK(nn::numbered_place(1, 2, 4) == 1);
}

TEST_CASE("even parts are even: of each rank's tokens all but its share move") {
  const std::vector<ops::TokenGrid> grids{{8, 4, 6}};
  for (const int ranks : {2, 4, 8}) {
    const FramePlan plan(grids, ranks, {500, 100, true});
    const std::int64_t each = 8 * 4 * 6 / ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(plan.tokens_of_frames(rank) == each);
      CHECK(plan.tokens_of_places(rank) == each);
      for (int to = 0; to < ranks; ++to)
        CHECK(plan.moved(rank, to) == each / ranks);
    }
  }
}

TEST_CASE("other samples fill the ranks that one has no frames for") {
  // Two frames of 24 tokens for six ranks, and eight images of 12.
  std::vector<ops::TokenGrid> grids{{2, 4, 6}};
  grids.insert(grids.end(), 8, {1, 3, 4});
  const FramePlan plan(grids, 6, {1000, 300, true});
  for (int rank = 0; rank < 6; ++rank)
    CHECK(plan.tokens_of_frames(rank) == 24);
  // The images stay where they are; of the first sample half goes.
  std::int64_t moved = 0;
  for (int from = 0; from < 6; ++from)
    for (int to = 0; to < 6; ++to)
      if (from != to) moved += plan.moved(from, to);
  CHECK(moved == 24);
  // One image for three ranks.
  const FramePlan one(std::vector<ops::TokenGrid>{{1, 2, 2}}, 3, {10, 5, true});
  CHECK(one.tokens_of_frames(0) == 4);
  CHECK(one.tokens_of_frames(1) + one.tokens_of_frames(2) == 0);
  CHECK(one.moved(0, 0) == 4);
}
