// What is likely the same, by an index of codes, and which source stays.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "clip/unique/duplicate_groups.h"
#include "clip/unique/duplicate_index.h"
#include "unit/curate/moving_scene.h"

using namespace vfm;
using clip::CommonStretch;
using clip::ComparedSource;
using drawing::discs;
using drawing::film;

TEST_CASE("an index names the source and the place of a part, and nothing for a stranger") {
  clip::DuplicateIndex index;
  for (std::uint32_t source = 0; source < 6; ++source)
    index.add(clip::indexed_moments(source, film(discs(1, 100 + source), 0, 15)));
  index.finish();
  const auto part = film(discs(1, 104), 5, 6, {0.05, 0.97, 0.1, 0.9});
  const auto places = index.find(6, part);
  REQUIRE_FALSE(places.empty());
  CHECK(places[0].source == 4);
  CHECK(places[0].start.offset == Approx(20).margin(2));
  CHECK(places[0].votes >= 3);
  // Ways to crop are few; their mean is near. All moments of the part are in it.
  CHECK(places.size() == 1);
  CHECK(places[0].start.crop.left == Approx(0.05).margin(0.03));
  CHECK(places[0].start.crop.right == Approx(0.97).margin(0.03));
  CHECK(places[0].start.crop.top == Approx(0.1).margin(0.03));
  CHECK(places[0].start.crop.bottom == Approx(0.9).margin(0.03));
  CHECK(places[0].start.from <= 3);
  CHECK(places[0].start.to >= 20);
  CHECK(places[0].start.to <= curate::moments_end(part.size()));
  CHECK(places[0].votes <= places[0].start.to - places[0].start.from);
  for (const auto& place : index.find(4, film(discs(1, 104), 0, 15)))
    CHECK(place.source != 4);
  const auto still = film([](double x, double, double) { return 200 * x; }, 0, 15);
  CHECK(clip::indexed_moments(7, still).empty());
  CHECK(index.find(7, still).empty());
}

namespace {

const std::vector<ComparedSource> five = {{"b.mp4", "h1", 60, 100, 10},
                                          {"small.mp4", "h2", 60.3, 25, 5},
                                          {"a.mp4", "h1", 60, 100, 10},
                                          {"part.mp4", "h3", 8, 400, 50},
                                          {"other.mp4", "h4", 30, 100, 10}};

CommonStretch stretch(std::size_t first, double first_begin, std::size_t second,
                      double second_begin, double seconds) {
  return {first, second, first_begin, first_begin + seconds, second_begin, second_begin + seconds,
          0.9,   {}};
}

}  // namespace

TEST_CASE("the longer stays, then the larger picture, then the first name") {
  const auto choices =
      clip::choose_sources(five, {stretch(0, 0, 1, 0.2, 59.5), stretch(0, 20, 3, 0, 7.9)}, 0.9);
  CHECK_FALSE(choices[2].keeper);  // a.mp4: as long as the rest but for half a second
  CHECK(choices[0].keeper == 2U);
  CHECK(choices[0].exact);
  CHECK(choices[1].keeper == 2U);
  CHECK_FALSE(choices[1].exact);
  CHECK(choices[1].covered > 0.98);
  CHECK(choices[3].keeper == 2U);
  for (int i = 0; i < 4; ++i)
    CHECK(choices[static_cast<std::size_t>(i)].group == 0U);
  CHECK_FALSE(choices[4].group);
  CHECK_FALSE(choices[4].keeper);
}

TEST_CASE("a part in common is no reason to leave out either") {
  const std::vector<CommonStretch> intro = {stretch(0, 0, 4, 0, 10)};
  const auto choices = clip::choose_sources(five, intro, 0.9);
  CHECK_FALSE(choices[4].keeper);
  CHECK_FALSE(choices[4].group);
  CHECK(clip::choose_sources(five, intro, 0.3)[4].keeper == 2U);
  // Two stretches are together what each is not.
  CHECK(clip::choose_sources(five, {stretch(0, 0, 4, 0, 15), stretch(0, 40, 4, 15, 15)}, 0.9)[4]
            .keeper == 2U);
}

TEST_CASE("who is left out leaves nobody out") {
  // part.mp4 is in other.mp4, which small.mp4 shows; part.mp4 and small.mp4 were not found alike.
  const auto choices =
      clip::choose_sources(five, {stretch(1, 10, 4, 0, 29.9), stretch(3, 0, 4, 2, 7.9)}, 0.9);
  CHECK_FALSE(choices[1].keeper);
  CHECK(choices[4].keeper == 1U);
  CHECK_FALSE(choices[3].keeper);
  CHECK(choices[3].group == choices[1].group);
}

TEST_CASE("what is said twice counts once, seen from either side") {
  CommonStretch one = stretch(0, 10, 3, 0, 8);
  one.crop = {0.1, 0.9, 0.2, 1};
  CommonStretch back = clip::exchanged(one);
  CHECK(back.first == 3);
  CHECK(back.first_begin == 0);
  CHECK(back.second_end == 18);
  CHECK(back.crop.left == Approx(-0.125));
  CHECK(back.crop.right == Approx(1.125));
  CHECK(back.crop.top == Approx(-0.25));
  CHECK(back.crop.bottom == Approx(1));
  CHECK(clip::exchanged(back).crop.right == Approx(0.9));
  CommonStretch better = stretch(0, 10.2, 3, 0.1, 7.5);
  better.score = 0.95;
  const auto kept =
      clip::without_repeats({stretch(1, 0, 2, 0, 5), one, better, stretch(0, 30, 3, 0, 8)});
  REQUIRE(kept.size() == 3);
  CHECK(kept[0].score == 0.95);
  CHECK(kept[1].first_begin == 30);
  CHECK(kept[2].first == 1);
}
