// Samples that the page shows: nearest ones, ends of scores, and those drawn by chance.
// SPDX-License-Identifier: Apache-2.0
#include "dataset/shown.h"

#include <catch2/catch.hpp>
#include <set>

#include "dataset/balance.h"
#include "dataset/nearest.h"
#include "dataset_run.h"
#include "io/packed.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

/// Items that have only notes.
class Noted {
 public:
  void add(const std::string& key, const std::string& notes) {
    Item item;
    item.key = item.source = key;
    item.notes = notes;
    batch_.add(item);
  }
  void settle() {
    items.take(batch_, 0);
    items.settle_keys([](std::uint32_t, const Item&, const Item&) {});
  }
  MemoryFolder folder;
  ItemStore items{folder.path, 0, false, true};

 private:
  ItemBatch batch_{folder.path};
};

class Vectors : public Noted {
 public:
  void vector(const std::string& key, const std::vector<float>& values, std::uint64_t encoder = 1) {
    std::string notes;
    io::put_ordered(notes, encoder, 8);
    io::put_text(notes, unit_halves(values));
    add(key, notes);
  }
  std::string nearest(const std::vector<std::uint32_t>& queries, std::size_t most) {
    share::Slots slots(2);
    std::string told;
    const auto vector_of_notes = [](std::string_view notes) {
      NotedVector noted;
      noted.encoder = io::take_ordered(notes, 8);
      noted.halves = io::take_text(notes);
      return noted;
    };
    for (const auto& list :
         nearest_samples(items, queries, most, vector_of_notes, vectors, slots)) {
      for (const NearSample& one : list)
        told += fmt::format("{}={} {:.3f}, ", one.key, one.number, one.cosine);
      told += "\n";
    }
    return told;
  }
  std::uint64_t vectors = 99;
};

/// Samples with numbers, picked for a page.
struct Picked : Noted {
  void numbers(const std::string& key, const Json& meta, const std::vector<float>& vector = {}) {
    JoinedSample sample;
    sample.key = key;
    sample.meta = meta;
    std::string notes;
    put_number_notes(notes, sample, {.values = vector, .encoder = 1, .by = ""}, names);
    add(key, notes);
  }
  Shown pick() {
    settle();
    share::Slots slots(1);
    return pick_shown(items, options, names, slots);
  }
  ShardOptions options;
  NumberNames names;
};

std::string ends_of(const Shown& shown, const std::string& name) {
  std::string told;
  for (const NumberField& field : shown.fields) {
    if (field.name != name) continue;
    told += fmt::format("{} {}..{}{}:", field.samples, field.range.low, field.range.high,
                        field.score ? " score" : "");
    for (const auto* list : {&field.lowest, &field.highest}) {
      for (const NumberField::End& end : *list)
        told += fmt::format(" {}={}", shown.items.at(end.item).item.key, end.value);
      told += " |";
    }
  }
  return told;
}

}  // namespace

TEST_CASE("the nearest are of the same encoder and length, by cosine, ties by key, never itself") {
  Vectors store;
  store.vector("a", {1, 0, 0});
  store.vector("d", {1, 1, 0});
  store.vector("c", {2, 2, 0});
  store.vector("b", {-1, 0, 0});
  store.vector("other", {1, 0, 0}, 2);
  store.vector("none", {0, 0, 0});
  store.vector("dropped", {1, 0, 0});
  store.vector("e", {0, 0, 1});
  store.vector("long", std::vector<float>(17, 1));
  store.settle();
  store.items.drop(6);
  CHECK(store.nearest({0, 5, 4, 2, 8}, 2) ==
        "c=2 0.707, d=1 0.707, \n\n\nd=1 1.000, a=0 0.707, \n\n");
  CHECK(store.vectors == 7);
  CHECK(store.nearest({0}, 9) == "c=2 0.707, d=1 0.707, e=7 0.000, b=3 -1.000, \n");
  CHECK(store.nearest({3}, 1) == "e=7 0.000, \n");
  Vectors empty;
  empty.vector("a", {0});
  empty.vector("b", {0});
  empty.settle();
  CHECK(empty.nearest({0, 1}, 2) == "\n\n");
  CHECK(empty.vectors == 0);
}

TEST_CASE("the nearest of very many are found, wherever they stand") {
  Vectors store;
  for (int i = 0; i < 1030; ++i) {
    const float angle = 0.003f * static_cast<float>(i * 7 % 1030);
    store.vector(fmt::format("k{:04}", i * 7 % 1030), {std::cos(angle), std::sin(angle), 0});
  }
  store.settle();
  CHECK(store.nearest({0, 100}, 2).starts_with("k0001="));
  const std::string near = store.nearest({100}, 4);  // k0700
  std::set<std::string> keys;
  for (std::size_t at = 0; (at = near.find('k', at)) != std::string::npos; ++at)
    keys.insert(near.substr(at, 5));
  CHECK(keys.size() == 4);
  for (const std::string& key : keys)
    CHECK(std::abs(std::stoi(key.substr(1)) - 700) < 16);
  CHECK(store.vectors == 1030);
}

TEST_CASE("a page shows five samples at each end of a score, half of them where there are few") {
  Picked all;
  for (int i = 0; i < 30; ++i) {
    Json meta = {{"q", i * 7 % 30}, {"fps", i}, {"same", 3}, {"flag", true}, {"text", "1"}};
    if (i < 3) meta["three"] = -i;
    if (i < 9) meta["nine"] = i / 2.0;
    if (i < 10) meta["ten"] = i;
    if (i == 4) meta["one"] = 1;
    if (i < 2) meta[std::string(64, 'f')] = i;
    if (i < 2) meta[std::string(65, 'g')] = i;
    all.numbers(fmt::format("k{:02}", i), meta);
  }
  const Shown shown = all.pick();
  std::string told;
  for (const NumberField& field : shown.fields)
    told += field.name + ": " + ends_of(shown, field.name) + "\n";
  CHECK(told ==
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff: 2 0..1 score: "
        "k00=0 | k01=1 |\n"
        "fps: 30 0..29: | |\n"
        "nine: 9 0..4 score: k00=0 k01=0.5 k02=1 k03=1.5 k04=2 | k08=4 k07=3.5 k06=3 k05=2.5 "
        "|\n"
        "one: 1 1..1: | |\n"
        "q: 30 0..29 score: k00=0 k13=1 k26=2 k09=3 k22=4 | k17=29 k04=28 k21=27 k08=26 "
        "k25=25 |\n"
        "same: 30 3..3: | |\n"
        "ten: 10 0..9 score: k00=0 k01=1 k02=2 k03=3 k04=4 | k09=9 k08=8 k07=7 k06=6 k05=5 |\n"
        "three: 3 -2..0 score: k02=-2 k01=-1 | k00=0 |\n");
  CHECK(shown.more_fields == 0);
  CHECK(shown.scores == 5);
  CHECK(shown.samples == 30);
  CHECK(shown.vectors == 0);
  CHECK(shown.member == "video.npy");
  REQUIRE(shown.drawn.size() == 24);
  CHECK(std::set<std::size_t>(shown.drawn.begin(), shown.drawn.end()).size() == 24);
  for (const ShownItem& one : shown.items)
    CHECK((one.whole && one.near.empty()));
  for (const NumberField& field : shown.fields)
    CHECK(field.chart.find("<svg") != std::string::npos);
}

TEST_CASE(
    "scores that are asked for are shown, facts too; neighbours come with each sample shown") {
  Picked all;
  for (int i = 0; i < 40; ++i) {
    const float angle = 0.01f * static_cast<float>(i);
    all.numbers(fmt::format("k{:02}", i), Json{{"fps", i}, {"same", 3}, {"q", i}},
                {std::cos(angle), std::sin(angle)});
  }
  all.options.report_scores = {"fps", "same"};
  all.options.near_member = "text.npy";
  const Shown shown = all.pick();
  CHECK(shown.scores == 2);
  CHECK(ends_of(shown, "fps") ==
        "40 0..39 score: k00=0 k01=1 k02=2 k03=3 k04=4 | k39=39 k38=38 k37=37 k36=36 k35=35 |");
  CHECK(ends_of(shown, "q") == "40 0..39: | |");
  CHECK(shown.member == "text.npy");
  CHECK(shown.vectors == 40);
  std::size_t whole = 0;
  for (const ShownItem& one : shown.items) {
    whole += one.whole;
    CHECK(one.near.size() == (one.whole ? 4 : 0));
    const int number = std::stoi(one.item.key.substr(1));
    for (const ShownItem::Near& near : one.near) {
      const int other = std::stoi(shown.items.at(near.item).item.key.substr(1));
      CHECK(near.cosine == Approx(std::cos(0.01 * (number - other))).margin(2e-3));
      CHECK(std::abs(number - other) <= 12);
    }
  }
  CHECK(whole > 24);
  CHECK(whole < shown.items.size());
}

TEST_CASE("of very many numbers the page has those asked for, and those that most samples have") {
  Picked all;
  for (int i = 0; i < 3; ++i) {
    Json meta = Json::object();
    for (int f = 0; f < 70; ++f)
      if (i == 0 || f % 2 == 0 || f == 1) meta[fmt::format("f{:02}", f)] = i + f;
    all.numbers(fmt::format("k{}", i), meta);
  }
  const auto names = [](const Shown& shown, bool scores) {
    std::string list;
    for (const NumberField& field : shown.fields)
      if (!scores || field.score) list += field.name.substr(1) + " ";
    return list;
  };
  const Shown shown = all.pick();
  CHECK(shown.fields.size() == 64);
  CHECK(shown.more_fields == 6);
  CHECK(names(shown, false) ==
        "00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 "
        "28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 "
        "56 57 58 60 62 64 66 68 ");
  CHECK(shown.scores == 36);  // those of which more than one sample has the number
  CHECK(names(shown, true) ==
        "00 01 02 04 06 08 10 12 14 16 18 20 22 24 26 28 30 32 34 36 38 40 42 44 46 48 50 52 "
        "54 56 58 60 ");
  all.options.report_scores = {"f69", "f67", "f00"};
  share::Slots slots(1);
  const Shown asked = pick_shown(all.items, all.options, all.names, slots);
  CHECK(names(asked, true) == "00 67 69 ");
  CHECK(asked.scores == 3);
  CHECK(asked.fields.size() == 64);
  CHECK(ends_of(asked, "f69") == "1 69..69 score: k0=69 | |");

  NumberNames names_of;
  names_of.add(1, "one", 2), names_of.add(1, "other"), names_of.add(2, "two");
  NumberNames more;
  more.add(2, "two", 5), more.add(3, "three");
  names_of.merge(more);
  CHECK(names_of.fields().at(1).name == "one");
  CHECK(names_of.fields().at(1).samples == 3);
  CHECK(names_of.fields().at(2).samples == 6);
  CHECK(names_of.fields().at(3).samples == 1);
}
