// Where models are loaded and who gets the next card, and what that makes of a pipe: simulated,
// beside every static split of the cards.
// SPDX-License-Identifier: Apache-2.0
#include "base/card_rule.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/card_averages.h"
#include "support/simulated_cards.h"

using namespace vfm;

namespace {

/// From 0 to 1, by splitmix64's mixing.
double mixed(std::int64_t number, std::size_t stage) {
  std::uint64_t bits = (static_cast<std::uint64_t>(number) * 4 + stage + 1) * 0x9E3779B97F4A7C15u;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>((bits ^ (bits >> 31)) % 1000) / 1000;
}

/// Of 1 on average: all alike, from 0.1 to 1.9, or one of twenty 20 times as long as the others.
double alike(double) {
  return 1;
}
double spread(double by) {
  return .1 + 1.8 * by;
}
double unlike(double by) {
  return (by < .05 ? 20 : 1) / 1.95;
}

/// Seconds of an item of each stage on a card of speed 1, before and after the bottleneck moves.
struct CardLoad {
  std::string name;
  std::vector<int> fan_out;
  std::vector<double> before, after;
  std::function<double(double)> sizes = alike;
  std::vector<double> speeds = {};
  std::vector<std::int64_t> memory = {}, needs = {};
};

/// The bottleneck moves from the last to the first, on cards of these.
CardLoad on_cards(const std::string& name, const std::vector<double>& speeds,
                  const std::vector<std::int64_t>& memory, const std::vector<std::int64_t>& needs) {
  return {name, {1, 1, 1}, {.02, .05, .2}, {.2, .05, .02}, alike, speeds, memory, needs};
}

const std::vector<CardLoad> kCardLoads = {
    {"third to second", {4, 1, 1}, {.08, .02, .06}, {.08, .06, .02}},
    {"last to first", {1, 1, 1}, {.02, .02, .2}, {.2, .02, .02}},
    {"first to second", {1, 1, 1}, {.2, .02, .02}, {.02, .2, .02}},
    {"eight of one", {8, 1, 1}, {.2, .02, .02}, {.1, .1, .02}},
    {"eight of one, second", {1, 8, 1}, {.02, .1, .05}, {.2, .1, .01}},
    {"sixteen of one", {4, 4, 1}, {.2, .1, .01}, {.1, .1, .05}},
    {"four stages", {1, 1, 1, 1}, {.02, .2, .02, .05}, {.1, .02, .02, .2}},
    on_cards("unlike speeds", {1, 1, 1, 1, 2, 2, 2, 2}, {}, {}),
    on_cards("unlike memory", {}, {1, 1, 1, 1, 2, 2, 2, 2}, {1, 1, 2}),
    on_cards("two models a card", {}, {3, 3, 3, 3, 3, 3, 3, 3}, {1, 2, 2}),
    on_cards("all models on each card", {}, {3, 3, 3, 3, 3, 3, 3, 3}, {1, 1, 1}),
};

/// `first` items as before, `then` as after the move.
SimulatedCards cards_pipe_of(const CardLoad& load, std::int64_t first, std::int64_t then) {
  SimulatedCards pipe;
  pipe.items = first + then;
  for (std::size_t s = 0; s < load.fan_out.size(); ++s) {
    const auto seconds = [=](std::int64_t number, std::int64_t source) {
      const double mean = source < first ? load.before[s] : load.after[s];
      return mean * load.sizes(mixed(number, s));
    };
    pipe.stages.push_back({load.fan_out[s], seconds, load.needs.empty() ? 1 : load.needs[s]});
  }
  for (std::size_t c = 0; c < pipe.cards.size(); ++c) {
    if (!load.speeds.empty()) pipe.cards[c].speed = load.speeds[c];
    if (!load.memory.empty()) pipe.cards[c].memory = load.memory[c];
  }
  return pipe;
}

/// All ways to give each card to one stage that its memory allows, at least one to each; of cards
/// that are alike it does not matter which.
std::vector<std::vector<CardSet>> card_splits_of(const SimulatedCards& pipe) {
  const std::size_t cards = pipe.cards.size(), stages = pipe.stages.size();
  std::vector<std::vector<CardSet>> all;
  std::vector<std::size_t> stage_of(cards, 0);
  for (;;) {
    bool counts = true;
    std::vector<CardSet> split(stages, 0);
    for (std::size_t c = 0; c < cards; ++c) {
      const bool like_last = c > 0 && pipe.cards[c].speed == pipe.cards[c - 1].speed &&
                             pipe.cards[c].memory == pipe.cards[c - 1].memory;
      counts = counts && pipe.stages[stage_of[c]].memory <= pipe.cards[c].memory &&
               !(like_last && stage_of[c] < stage_of[c - 1]);
      split[stage_of[c]] |= card_bit(static_cast<int>(c));
    }
    if (counts && std::find(split.begin(), split.end(), CardSet{0}) == split.end())
      all.push_back(split);
    std::size_t c = 0;
    while (c < cards && ++stage_of[c] == stages)
      stage_of[c++] = 0;
    if (c == cards) return all;
  }
}

/// Items of the first stage a second that the best split has, when its buffers are full.
double best_card_split(SimulatedCards pipe, double each) {
  double best = 0;
  pipe.until = 35;
  for (const auto& split : card_splits_of(pipe)) {
    pipe.split = split;
    best = std::max(best, pipe.run().rate(15, 35) / each);
  }
  return best;
}

/// The stage with most work, and all work of an item of the first.
std::pair<std::size_t, double> bottleneck(const CardLoad& load,
                                          const std::vector<double>& seconds) {
  double each = 1, all = 0, most = 0;
  std::size_t found = 0;
  for (std::size_t s = 0; s < seconds.size(); ++s) {
    if (each * seconds[s] > most) most = each * seconds[s], found = s;
    all += each * seconds[s];
    each *= load.fan_out[s];
  }
  return {found, all};
}

struct Followed {
  double before, after;            ///< rates, of the best split's
  double busy_before, busy_after;  ///< the bottleneck's cards
  int loads = 0;                   ///< in the last 40 s of either phase
  bool memory_kept = true;
};

/// From 25 s on, by when all stages are loaded; and from 5 s and a load after the new bottleneck
/// has begun its first item of the new load.
Followed follow(const CardLoad& load) {
  double each = 1, cards = 0;
  for (const int fan_out : load.fan_out)
    each *= fan_out;
  for (const SimulatedCards::Card& card : cards_pipe_of(load, 1, 1).cards)
    cards += card.speed;
  const auto [old_stage, old_work] = bottleneck(load, load.before);
  const auto [stage, work] = bottleneck(load, load.after);
  const auto first = static_cast<std::int64_t>(80 * cards / old_work);
  const auto run = cards_pipe_of(load, first, static_cast<std::int64_t>(200 * cards / work)).run();
  double begun = 0, ended = 0;
  for (const SimulatedCards::Span& item : run.items) {
    if (begun == 0 && item.stage == stage && item.source >= first) begun = item.from;
    if (item.stage == old_stage && item.source < first) ended = std::max(ended, item.to);
  }
  const double moved = std::max(begun, ended), from = moved + 5 + 2;
  const auto busiest = [&](double since, double until) {
    double most = 0;
    for (std::size_t s = 0; s < load.fan_out.size(); ++s)
      most = std::max(most, run.share_busy(s, since, until));
    return most;
  };
  Followed result;
  result.before = run.rate(25, std::min(begun, ended)) / each /
                  best_card_split(cards_pipe_of(load, 1 << 30, 0), each);
  result.after =
      run.rate(from, from + 40) / each / best_card_split(cards_pipe_of(load, 0, 1 << 30), each);
  result.busy_before = busiest(25, std::min(begun, ended));
  result.busy_after = busiest(from, from + 40);
  for (const SimulatedCards::Span& model : run.models)
    if ((model.from > 27 && model.from < moved) ||
        (model.from > from + 2 && model.from < from + 40))
      ++result.loads;
  result.memory_kept = run.memory_kept;
  return result;
}

void check(const CardLoad& load, double least_rate, double least_busy) {
  const Followed result = follow(load);
  CAPTURE(load.name, result.before, result.after, result.busy_before, result.busy_after,
          result.loads);
  CHECK(result.before >= least_rate);
  CHECK(result.after >= least_rate);
  CHECK(result.busy_before >= least_busy);
  CHECK(result.busy_after >= least_busy);
  CHECK(result.memory_kept);
}

}  // namespace

TEST_CASE("an item gets a free card with its model, but not one that a later stage waits for") {
  const std::vector<CardPlace> cards = {{1, 1}, {1, 2}, {1, 1}};
  std::vector<CardClaim> claims = {{0, 1, 0b011}, {1, 0, 0b111}};
  bool left = false;
  CHECK(card_for_item(claims, 0, 0b111, cards, &left) == 1);  // the faster one
  CHECK(card_for_item(claims, 0, 0b101, cards, &left) == 0);
  CHECK(card_for_item(claims, 0, 0b100, cards, &left) == -1);
  CHECK_FALSE(left);
  claims[1].waiting = 1;
  CHECK(card_for_item(claims, 0, 0b111, cards, &left) == -1);
  CHECK(left);
  // The later one leaves what the other one could have as long as it can.
  CHECK(card_for_item(claims, 1, 0b111, cards) == 2);
  CHECK(card_for_item(claims, 1, 0b011, cards) == 1);
}

TEST_CASE("models are loaded for items that wait, where memory is") {
  using Plan = std::vector<CardSet>;
  const std::vector<CardPlace> cards(4, {10, 1});
  CardStage first{.place = 0, .memory = 6, .waiting = 2, .may = 0b1111};
  CardStage second{.place = 1, .memory = 6, .idle = 60, .may = 0b1111};
  const auto plan = [&] {
    return plan_cards(std::vector<std::vector<CardStage>>{{first, second}}, cards, 60);
  };
  const auto count = [](CardSet set) { return std::popcount(set); };
  CHECK(count(plan()[0]) == 2);  // as many as items
  CHECK(plan()[1] == 0);
  first.waiting = 9;
  CHECK(count(plan()[0]) == 4);
  second.idle = 0;  // it has just joined, and will want one
  CHECK(count(plan()[0]) == 3);
  CHECK(count(plan()[1]) == 1);
  second.memory = 4;  // room for both
  CHECK(count(plan()[0]) == 4);
  second.memory = 6;
  // One that works everywhere gives one to another one that begins; not where an item waits for
  // what is being loaded.
  first = {.place = 0,
           .memory = 6,
           .waiting = 1,
           .work = 4,
           .short_of = 1,
           .known = true,
           .may = 0b1111,
           .loaded = 0b1111};
  second.waiting = 1;
  CHECK((count(plan()[0]) == 3 && count(plan()[1]) == 1));
  first.fixed = 0b1111;
  CHECK(plan() == Plan{0b1111, 0});
  first.fixed = 0b1101;
  CHECK(plan() == Plan{0b1101, 0b0010});
  // A stage keeps its last card as long as it has work, and a second longer where one starves.
  first = {.place = 0, .memory = 6, .work = 1, .known = true, .may = 1, .loaded = 1};
  second.may = 1;
  CHECK(plan() == Plan{1, 0});
  first.idle = .9;
  CHECK(plan() == Plan{1, 0});
  first.idle = 1.1;
  CHECK(plan() == Plan{0, 1});
  first.load_seconds = 6;  // it would have to wait as long again
  CHECK(plan() == Plan{1, 0});
  first.load_seconds = 0;
  // Who is short of cards, but has one, does not get the last one of another so soon.
  second = {.place = 1,
            .memory = 6,
            .waiting = 4,
            .work = 1,
            .short_of = 1,
            .known = true,
            .may = 0b11,
            .loaded = 0b10};
  first.idle = 2;
  CHECK(plan() == Plan{1, 0b10});
  first.idle = 20;
  CHECK(plan() == Plan{0, 0b11});
  second.loaded = 0;
  // Where less memory is left than models have, one leaves.
  const std::vector<CardPlace> small(1, {5, 1});
  first.idle = 20;
  second.waiting = 0;
  CHECK(plan_cards(std::vector<std::vector<CardStage>>{{first, second}}, small, 60) == Plan{0, 0});
}

TEST_CASE("models move where it pays, by what is known surely") {
  using Plan = std::vector<CardSet>;
  std::vector<CardPlace> cards(4, {1, 1});
  CardStage first{
      .memory = 1, .work = 1, .known = true, .load_seconds = 2, .may = 0b1111, .loaded = 0b0111};
  CardStage second{.place = 1,
                   .memory = 1,
                   .waiting = 4,
                   .work = 1,
                   .short_of = 1,
                   .known = true,
                   .load_seconds = 2,
                   .may = 0b1111,
                   .loaded = 0b1000};
  const auto plan = [&](double lasted = 60) {
    return plan_cards(std::vector<std::vector<CardStage>>{{first, second}}, cards, lasted);
  };
  const Plan as_it_is{0b0111, 0b1000};
  CHECK((std::popcount(plan()[0]) == 2 && std::popcount(plan()[1]) == 2));
  first.work = 2.5;  // it needs its three
  CHECK(plan() == as_it_is);
  first.work = 1;
  second.short_of = .4;  // not for want of cards
  CHECK(plan() == as_it_is);
  second.short_of = 1;
  first.error = second.error = .6;  // it may be chance
  CHECK(plan() == as_it_is);
  first.error = second.error = 0;
  // A load that takes long must gain more, and so it is soon after another one.
  first.work = 1.7, second.load_seconds = 4;
  CHECK(plan() != as_it_is);
  CHECK(plan(8) == as_it_is);
  second.load_seconds = 60;
  CHECK(plan() == as_it_is);
  // A card that is faster for one that is slower.
  first = {.memory = 1, .work = 1, .known = true, .may = 0b11, .loaded = 0b10};
  second.work = 1, second.load_seconds = 1, second.may = 0b11, second.loaded = 0b01;
  cards = {{1, 1}, {1, 4}};
  CHECK(plan() == Plan{0b10, 0b01});  // both would have to wait
  // A shorter span speaks against what a longer one tells.
  cards.assign(4, {1, 1});
  first = {.memory = 1, .work = 1, .known = true, .may = 0b1111, .loaded = 0b0111};
  second.may = 0b1111, second.loaded = 0b1000;
  std::vector<CardStage> before{first, second}, now{first, second};
  now[0].work = 3, now[1].work = .9, now[0].error = .2;
  CHECK(plan_cards(std::vector<std::vector<CardStage>>{now, before}, cards, 60) == as_it_is);
  now[0].error = 1;
  CHECK(plan_cards(std::vector<std::vector<CardStage>>{now, before}, cards, 60) != as_it_is);
  // One that gains too little by a shorter span is not made by a longer one, where hardly anything
  // of the shorter one may be chance.
  now[0].work = 1.75, now[1].work = 1;
  now[0].error = now[1].error = .08;
  CHECK(plan_cards(std::vector<std::vector<CardStage>>{now, before}, cards, 60) == as_it_is);
  now[0].error = now[1].error = .2;
  CHECK(plan_cards(std::vector<std::vector<CardStage>>{now, before}, cards, 60) != as_it_is);
}

TEST_CASE("averages forget, and know what may be chance") {
  std::vector<CardPlace> cards(2, {1, 1});
  CardAverages averages;
  CardCounts counts;
  const auto run = [&](double busy, double items, double squares, int looks) {
    for (int i = 0; i < looks; ++i) {
      counts.busy[0] += busy, counts.items[0] += items, counts.squares += squares;
      counts.short_of += .25;
      averages.add(counts, .25);
    }
  };
  CardStage stage;
  run(.125, 5, 0, 400);
  averages.tell(0, cards, stage);
  CHECK(stage.work == Approx(.5));
  CHECK(stage.short_of == Approx(1));
  CHECK(stage.error == 0);
  run(.25, 5, .25 * .25 / 5, 4);  // for a second, of items that are as unlike as they are long
  averages.tell(0, cards, stage);
  CHECK(stage.work == Approx(1 - .5 * std::exp(-1)));
  const double sure = stage.error;
  CHECK((sure > .1 && sure < .6));
  averages.tell(2, cards, stage);
  CHECK(stage.work == Approx(.52).margin(.01));
  CHECK(stage.error < sure);
  cards[0].speed = 2;
  averages.tell(2, cards, stage);
  CHECK(stage.work == Approx(1.04).margin(.02));
  CHECK(CardAverages().seconds[0] == 0);
}

TEST_CASE("speeds are learned from items of any size, and a change of size is no speed") {
  std::vector<CardPlace> cards(3, {1, 1});
  const std::vector<double> speeds = {1, 2, 1};
  CardItem last{0, .05};
  for (int i = 0; i < 3000; ++i) {
    const int card = i % 3;
    const double size = spread(mixed(i, 0)) * (i < 1500 ? .05 : .5);
    const CardItem item{card, size / speeds[static_cast<std::size_t>(card)]};
    CHECK(compare_items(last, item, cards) >= 0);
    last = item;
  }
  CHECK(cards[1].speed / cards[0].speed == Approx(2).epsilon(.2));
  CHECK(cards[2].speed / cards[0].speed == Approx(1).epsilon(.2));
  CHECK(compare_items({0, .1}, {0, .3}, cards) ==
        Approx(.04 / 2 * cards[0].speed * cards[0].speed));
}

TEST_CASE("the simulated cards do what can be told without them") {
  // A card each, 10 items of 1 s: the first is through after 3 s, then one comes a second.
  CardLoad load{"", {1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  SimulatedCards pipe = cards_pipe_of(load, 10, 0);
  pipe.cards.resize(3);
  pipe.split = {1, 2, 4};
  auto run = pipe.run();
  REQUIRE(run.times.size() == 10);
  for (std::size_t i = 0; i < run.times.size(); ++i)
    CHECK(run.times[i] == Approx(3.0 + static_cast<double>(i)));
  CHECK(run.share_busy(1, 1, 11) == Approx(1));
  CHECK(run.share_busy(1, 0, 12) == Approx(10.0 / 12));
  // By the rule a card is loaded first; all of it is done on one card, too.
  pipe.split.clear();
  run = pipe.run();
  CHECK(run.end() > 14);
  CHECK(run.end() < 30);
  pipe.cards.resize(1);
  run = pipe.run();
  CHECK(run.times.size() == 10);
  CHECK(run.loads() >= 3);
  CHECK(run.memory_kept);
  load.fan_out = {3, 1, 1};
  CHECK(cards_pipe_of(load, 10, 0).run().times.size() == 30);
}

TEST_CASE("shared cards do what the best static split does, and follow the bottleneck") {
  for (const CardLoad& load : kCardLoads)
    check(load, .95, .95);
}

TEST_CASE("shared cards do it for items from a tenth to twice their mean, too", "[nightly]") {
  for (CardLoad load : kCardLoads) {
    load.sizes = spread;
    // What is chance takes longer to be told from what is not. Items of 0.4 s that become eight
    // records each leave the others without work for moments, however cards are split.
    check(load, .85, .8);
  }
}

TEST_CASE("by what is longer ago nothing is moved, where the last seconds tell enough") {
  CardLoad load = on_cards("unlike speeds", {1, 1, 1, 1, 2, 2, 2, 2}, {}, {});
  load.sizes = spread;
  CHECK(follow(load).loads <= 2);
}

TEST_CASE("a stage that has items for a moment every few seconds keeps its card") {
  SimulatedCards pipe;
  pipe.items = 400;
  pipe.stages = {{1, [](auto, auto) { return 5.; }}, {1, [](auto, auto) { return .1; }}};
  const auto run = pipe.run();
  CHECK(run.times.size() == 400);
  CHECK(run.loads() <= 12);  // of 8 cards
}

TEST_CASE("where one item of twenty takes twenty times as long, no more is moved than pays") {
  CardLoad load = kCardLoads[0];
  load.sizes = unlike;
  const Followed result = follow(load);
  CHECK(result.before >= .85);
  CHECK(result.memory_kept);
  CHECK(result.loads <= 24);  // in 80 s or so, of 8 cards
}
