// SPDX-License-Identifier: Apache-2.0
#include "dataset/shown.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/json.h"
#include "base/philox.h"
#include "dataset/balance.h"
#include "dataset/nearest.h"
#include "io/packed.h"

namespace vfm::dataset {
namespace {

constexpr std::size_t kLongestField = 64;  // in bytes
constexpr std::size_t kMostFields = 64, kMostScores = 32;
// Samples at each end of a score, random samples, and near samples of each sample.
constexpr std::size_t kEnds = 5, kByChance = 24, kNear = 4;
constexpr int kBins = 40;

// Facts about the clip and its storage, which say nothing about quality.
constexpr std::array<std::string_view, 25> kFacts = {
    "begin",         "bit_depth",     "bytes",
    "color_1_share", "color_2_share", "color_3_share",
    "duration",      "end",           "end_score",
    "fps",           "frames",        "height",
    "index",         "pts_begin",     "pts_end",
    "quality",       "seconds",       "source_begin",
    "source_height", "source_width",  "source_bit_depth",
    "stream",        "width",         "audio_channels",
    "start_score"};

/// Candidates have an order that does not depend on the order of the input.
struct Candidate {
  double value = 0;
  std::uint64_t hash = 0;
  std::string key;
  std::uint32_t number = 0;
  bool operator<(const Candidate& b) const {
    return std::tie(value, hash, key) < std::tie(b.value, b.hash, b.key);
  }
};

/// Keeps the first `most` of all candidates.
class Firsts {
 public:
  explicit Firsts(std::size_t most) : most_(most) {}
  void add(double value, std::uint64_t hash, const std::string& key, std::uint32_t number) {
    if (list_.size() == most_ &&
        std::tie(list_.back().value, list_.back().hash) < std::tie(value, hash))
      return;
    Candidate one{value, hash, key, number};
    list_.insert(std::upper_bound(list_.begin(), list_.end(), one), std::move(one));
    if (list_.size() > most_) list_.pop_back();
  }
  const std::vector<Candidate>& list() const { return list_; }

 private:
  std::size_t most_;
  std::vector<Candidate> list_;
};

struct FieldWork {
  NumberField field;
  Firsts lowest{kEnds}, highest{kEnds};
  std::optional<report::Histogram> histogram;
};

struct NumberNotes {
  explicit NumberNotes(std::string_view notes) : rest(notes), numbers(io::take_number(rest)) {}
  bool next(std::uint64_t& hash, double& value) {
    if (numbers == 0) return false;
    --numbers;
    hash = io::take_ordered(rest, 8);
    value = io::take_real(rest);
    return true;
  }
  NotedVector vector() {
    std::uint64_t hash = 0;
    for (double value = 0; next(hash, value);) {
    }
    NotedVector noted;
    noted.encoder = io::take_ordered(rest, 8);
    noted.halves = io::take_text(rest);
    return noted;
  }

  std::string_view rest;
  std::uint64_t numbers;
};

class Picker {
 public:
  Picker(const ItemStore& items, const ShardOptions& options) : items_(items), options_(options) {
    shown_.member = options.compared_member();
  }

  Shown pick(const NumberNames& names, share::Slots& slots) {
    choose_fields(names);
    find_ends();
    choose_scores();
    draw_charts();
    for (auto& [hash, work] : fields_) {
      take_ends(work);
      if (work.field.samples > 0) shown_.fields.push_back(std::move(work.field));
    }
    std::sort(shown_.fields.begin(), shown_.fields.end(),
              [](const NumberField& a, const NumberField& b) { return a.name < b.name; });
    for (const Candidate& one : drawn_.list())
      shown_.drawn.push_back(place_of(one.number));
    find_near(slots);
    return std::move(shown_);
  }

 private:
  /// Prefers the fields that --scores names, then the fields that most samples have.
  void choose_fields(const NumberNames& names) {
    struct Choice {
      bool not_wanted = false;
      std::uint64_t samples = 0, hash = 0;
      std::string name;
    };
    const std::set<std::string> wanted(options_.report_scores.begin(),
                                       options_.report_scores.end());
    std::vector<Choice> choices;
    for (const auto& [hash, field] : names.fields())
      choices.push_back({!wanted.contains(field.name), field.samples, hash, field.name});
    std::sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return std::tie(a.not_wanted, b.samples, a.name) < std::tie(b.not_wanted, a.samples, b.name);
    });
    for (const Choice& choice : choices)
      if (fields_.size() < kMostFields) fields_[choice.hash].field.name = choice.name;
    shown_.more_fields = choices.size() - fields_.size();
  }

  template <class Use>
  void each_number(const Use& use) const {
    items_.for_each_noted(
        [&](std::uint32_t number, const std::string& key, std::string_view notes) {
          NumberNotes numbers(own_notes(notes));
          std::uint64_t hash = 0;
          for (double value = 0; numbers.next(hash, value);)
            use(number, key, hash, value);
        });
  }

  std::string_view own_notes(std::string_view notes) const {
    skip_balance_notes(notes, options_.balance.rules);
    return notes;
  }

  void find_ends() {
    items_.for_each_noted([&](std::uint32_t number, const std::string& key, std::string_view) {
      drawn_.add(0, random_key(key), key, number);
      ++shown_.samples;
    });
    each_number(
        [&](std::uint32_t number, const std::string& key, std::uint64_t hash, double value) {
          const auto found = fields_.find(hash);
          if (found == fields_.end()) return;
          FieldWork& work = found->second;
          ++work.field.samples;
          work.field.range.add(value);
          const std::uint64_t drawn = random_key(key);
          work.lowest.add(value, drawn, key, number);
          work.highest.add(-value, drawn, key, number);
        });
  }

  /// Scores are the numbers that --scores names, or else all numbers that vary and are not in
  /// kFacts.
  void choose_scores() {
    const std::vector<std::string>& asked = options_.report_scores;
    const auto is_one_of = [](const auto& list, const std::string& name) {
      return std::find(list.begin(), list.end(), name) != list.end();
    };
    std::vector<NumberField*> scores;
    for (auto& [hash, work] : fields_) {
      const NumberField& field = work.field;
      if (asked.empty() ? field.range.low < field.range.high && !is_one_of(kFacts, field.name)
                        : is_one_of(asked, field.name))
        scores.push_back(&work.field);
    }
    std::sort(scores.begin(), scores.end(), [](const NumberField* a, const NumberField* b) {
      return std::tie(b->samples, a->name) < std::tie(a->samples, b->name);
    });
    shown_.scores = scores.size();
    for (std::size_t i = 0; i < scores.size(); ++i)
      scores[i]->score = i < kMostScores;
  }

  void draw_charts() {
    for (auto& [hash, work] : fields_)
      work.histogram.emplace(work.field.range, kBins);
    each_number([&](std::uint32_t, const std::string&, std::uint64_t hash, double value) {
      const auto found = fields_.find(hash);
      if (found != fields_.end()) found->second.histogram->add(value);
    });
    for (auto& [hash, work] : fields_)
      work.field.chart = work.histogram->small_svg(work.field.name);
  }

  /// Takes fewer samples if there are few, so that no sample is at both ends.
  void take_ends(FieldWork& work) {
    NumberField& field = work.field;
    if (!field.score) return;
    const auto most = std::min<std::uint64_t>(kEnds, (field.samples + 1) / 2);
    for (const Candidate& one : work.lowest.list())
      if (field.lowest.size() < most) field.lowest.push_back({one.value, place_of(one.number)});
    for (const Candidate& one : work.highest.list())
      if (field.highest.size() < std::min(most, field.samples - field.lowest.size()))
        field.highest.push_back({-one.value, place_of(one.number)});
  }

  /// Returns the index in shown_.items, and adds the item if it is missing.
  std::size_t place_of(std::uint32_t number) {
    const auto [found, is_new] = places_.emplace(number, shown_.items.size());
    if (is_new) shown_.items.emplace_back().item = items_.get(number);
    return found->second;
  }

  void find_near(share::Slots& slots) {
    std::vector<std::uint32_t> queries(places_.size());
    for (const auto& [number, place] : places_)
      queries[place] = number;
    const auto vector_of = [&](std::string_view notes) {
      return NumberNotes(own_notes(notes)).vector();
    };
    const auto near = nearest_samples(items_, queries, kNear, vector_of, shown_.vectors, slots);
    for (std::size_t q = 0; q < queries.size(); ++q) {
      shown_.items[q].whole = true;
      for (const NearSample& one : near[q]) {
        const std::size_t place = place_of(one.number);
        shown_.items[q].near.push_back({place, one.cosine});
      }
    }
  }

  const ItemStore& items_;
  const ShardOptions& options_;
  std::map<std::uint64_t, FieldWork> fields_;
  Firsts drawn_{kByChance};
  std::map<std::uint32_t, std::size_t> places_;  // Index in shown_.items, by number.
  Shown shown_;
};

}  // namespace

void NumberNames::add(std::uint64_t hash, std::string_view name, std::uint64_t samples) {
  Field& field = fields_[hash];
  if (field.samples == 0) field.name = name;
  field.samples += samples;
}

void NumberNames::merge(const NumberNames& other) {
  for (const auto& [hash, field] : other.fields_)
    add(hash, field.name, field.samples);
}

void put_number_notes(std::string& notes, const JoinedSample& sample, const SampleVector& vector,
                      NumberNames& names) {
  std::string numbers;
  std::uint64_t count = 0;
  for (const auto& field : sample.meta->items()) {
    if (!field.value().is_number() || field.key().size() > kLongestField) continue;
    const double value = field.value().get<double>();
    if (!std::isfinite(value)) continue;
    const std::uint64_t hash = random_key(field.key());
    names.add(hash, field.key());
    io::put_ordered(numbers, hash, 8);
    io::put_real(numbers, value);
    ++count;
  }
  io::put_number(notes, count);
  notes += numbers;
  io::put_ordered(notes, vector.encoder, 8);
  io::put_text(notes, unit_halves(vector.values));
}

Shown pick_shown(const ItemStore& items, const ShardOptions& options, const NumberNames& names,
                 share::Slots& slots) {
  return Picker(items, options).pick(names, slots);
}

}  // namespace vfm::dataset
