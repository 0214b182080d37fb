// SPDX-License-Identifier: Apache-2.0
#include "dataset/balance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/half.h"
#include "base/json.h"
#include "base/log.h"
#include "base/philox.h"
#include "curate/vectors/clusters.h"
#include "io/packed.h"
#include "io/scratch_file.h"
#include "io/sorter.h"

namespace vfm::dataset {
namespace {

constexpr std::size_t kLargest = 50;             // values that are listed
constexpr std::size_t kSampleOfCluster = 64;     // vectors per cluster
constexpr std::size_t kSampleBytes = 192 << 20;  // memory of the sampled vectors
constexpr std::size_t kPortionBytes = 16 << 20;  // memory of one batch of vectors
constexpr int kDrawn = 8;

void append_floats(std::string_view halves, std::vector<float>& rows) {
  std::vector<std::uint16_t> bits(halves.size() / sizeof(std::uint16_t));
  std::memcpy(bits.data(), halves.data(), halves.size());
  rows.resize(rows.size() + bits.size());
  halves_to_floats(bits, std::span(rows).last(bits.size()));
}

struct Note {
  std::uint64_t encoder = 0;
  std::string_view text;  // The value, or the vector in halves.
};

Note note_of(std::string_view notes, const std::vector<BalanceRule>& rules, std::size_t rule) {
  for (std::size_t r = 0;; ++r) {
    Note note;
    if (rules[r].clusters()) note.encoder = io::take_ordered(notes, 8);
    note.text = io::take_text(notes);
    if (r == rule) return note;
  }
}

/// One rule. Its samples are sorted by value, then by the random number of their key.
class Rule {
 public:
  Rule(ItemStore& items, const BalanceOptions& options, std::size_t number, std::uint64_t seed)
      : items_(items),
        options_(options),
        number_(number),
        seed_(seed),
        sorted_(items.folder()),
        sizes_(items.folder()) {
    told_.rule = options.rules[number];
  }

  void sort(const VectorNames& encoders, share::Slots& slots) {
    if (told_.rule.clusters())
      sort_clusters(encoders, slots);
    else
      each([&](std::uint32_t number, const std::string& key, const Note& note) {
        put(note.text, key, number);
      });
    count_values();
    sorted_.park();
  }

  void leave_out(std::vector<bool>& out, const std::function<void(const LeftOut&)>& use) {
    walk([&](const std::string& value, std::uint64_t samples, std::uint64_t place,
             const std::string& key, std::uint32_t number) {
      const std::uint64_t most = fair_share(samples);
      if (place < most) return;
      ++told_.left_out;
      if (out[number]) return;
      out[number] = true;
      use({key, LeftOutReason::balance, told_.rule.name, value, samples, most});
    });
  }

  /// Must be called after leave_out() of all rules.
  Balanced tell(const std::vector<bool>& out) {
    std::optional<Balanced::Value> last;
    const auto end = [&] {
      if (!last) return;
      if (const auto found = nearest_.find(last->value); found != nearest_.end())
        last->nearest = found->second.second;
      tell(*std::move(last));
    };
    walk([&](const std::string& value, std::uint64_t samples, std::uint64_t place,
             const std::string&, std::uint32_t number) {
      if (place == 0) {
        end();
        last = Balanced::Value{value, samples, fair_share(samples), 0, {}};
      }
      last->stay += !out[number];
    });
    end();
    return std::move(told_);
  }

 private:
  using UseNote =
      std::function<void(std::uint32_t number, const std::string& key, const Note& note)>;
  void each(const UseNote& use) const {
    items_.for_each_noted(
        [&](std::uint32_t number, const std::string& key, std::string_view notes) {
          use(number, key, note_of(notes, options_.rules, number_));
        });
  }

  std::uint64_t draw_of(const std::string& key) const {
    const Random random(seed_, Purpose::balance, 0, random_key(key));
    return std::uint64_t{random.bits(0)} << 32 | random.bits(1);
  }

  void put(std::string_view value, const std::string& key, std::uint32_t number) {
    std::string record;
    io::put_ordered_text(record, value);
    io::put_ordered(record, draw_of(key), kDrawn);
    io::put_ordered_text(record, key);
    io::put_number(record, number);
    sorted_.add(record);
  }

  void count_values() {
    io::Sorter::Stream stream = sorted_.sorted();
    std::optional<std::string> last;
    std::uint64_t size = 0;
    const auto end = [&] {
      if (!last) return;
      ++told_.values;
      told_.samples += size;
      weights_ += weight(size);
      sizes_.append({reinterpret_cast<const char*>(&size), sizeof size});
      size = 0;
    };
    for (std::string_view record; stream.next(record);) {
      std::string value = io::take_ordered_text(record);
      if (last != value) {
        end();
        last = std::move(value);
      }
      ++size;
    }
    end();
  }

  double weight(std::uint64_t samples) const {
    return std::pow(static_cast<double>(samples), 1 - told_.rule.strength);
  }
  /// Returns the share, rounded up. The factor keeps rounding errors of the sum `weights_` from
  /// adding a sample.
  std::uint64_t fair_share(std::uint64_t samples) const {
    const double share = static_cast<double>(told_.samples) * weight(samples) / weights_;
    return std::min(samples, static_cast<std::uint64_t>(std::ceil(share * (1 - 1e-12))));
  }

  /// Calls `use` with all samples, sorted by value. `place` counts the samples of a value from 0.
  void walk(
      const std::function<void(const std::string& value, std::uint64_t samples, std::uint64_t place,
                               const std::string& key, std::uint32_t number)>& use) {
    io::Sorter::Stream stream = sorted_.sorted();
    io::ScratchReader sizes(sizes_);
    std::string value;
    std::uint64_t samples = 0, place = 0;
    for (std::string_view record; stream.next(record); ++place) {
      value = io::take_ordered_text(record);
      if (place == samples) {
        std::memcpy(&samples, sizes.bytes(sizeof samples).data(), sizeof samples);
        place = 0;
      }
      io::take_ordered(record, kDrawn);
      const std::string key = io::take_ordered_text(record);
      use(value, samples, place, key, static_cast<std::uint32_t>(io::take_number(record)));
    }
  }

  void tell(Balanced::Value value) {
    const auto more = [](const Balanced::Value& a, const Balanced::Value& b) {
      return a.samples != b.samples ? a.samples > b.samples : a.value < b.value;
    };
    std::vector<Balanced::Value>& list = told_.largest;
    list.insert(std::upper_bound(list.begin(), list.end(), value, more), std::move(value));
    if (list.size() > kLargest) list.pop_back();
  }

  /// Throws Error{usage} if the vectors are of several encoders.
  std::uint64_t count_vectors(const VectorNames& encoders) {
    std::uint64_t vectors = 0;
    std::set<std::uint64_t> ids;
    each([&](std::uint32_t, const std::string&, const Note& note) {
      if (note.text.empty()) return;
      ++vectors;
      ids.insert(note.encoder);
      if (ids.size() < 2) return;
      fail_usage(
          "--balance: the '{}' of some samples are of other encoders than those of others ({} and "
          "{}), so they have no clusters in common; keep those of one with --where, or run "
          "vfm-embed again",
          told_.rule.name, dump_json(encoders.of(*ids.begin())),
          dump_json(encoders.of(*ids.rbegin())));
    });
    if (vectors > 0) told_.by = encoders.of(*ids.begin());
    return vectors;
  }

  /// Returns the vectors of the `most` samples with the lowest random numbers, in that order.
  std::vector<float> draw_vectors(std::size_t most) const {
    struct Drawn {
      std::uint64_t draw;
      std::string key, halves;
      bool operator<(const Drawn& b) const { return std::tie(draw, key) < std::tie(b.draw, b.key); }
    };
    std::priority_queue<Drawn> lowest;
    each([&](std::uint32_t, const std::string& key, const Note& note) {
      if (note.text.empty()) return;
      const std::uint64_t draw = draw_of(key);
      if (lowest.size() == most && draw > lowest.top().draw) return;
      lowest.push({draw, key, std::string(note.text)});
      if (lowest.size() > most) lowest.pop();
    });
    std::vector<std::string> rows(lowest.size());
    for (std::size_t i = rows.size(); i-- > 0; lowest.pop())
      rows[i] = lowest.top().halves;
    std::vector<float> floats;
    for (const std::string& row : rows)
      append_floats(row, floats);
    return floats;
  }

  void sort_clusters(const VectorNames& encoders, share::Slots& slots) {
    const std::uint64_t vectors = count_vectors(encoders);
    std::size_t dim = 0;
    each([&](std::uint32_t, const std::string&, const Note& note) {
      if (dim == 0) dim = note.text.size() / sizeof(std::uint16_t);
    });
    if (vectors == 0) {
      each(
          [&](std::uint32_t number, const std::string& key, const Note&) { put({}, key, number); });
      return;
    }
    constexpr double kMostOfItself = 1024;
    const double root = std::min(kMostOfItself, std::round(std::sqrt(double(vectors))));
    const std::size_t wanted = options_.clusters > 0 ? options_.clusters : std::size_t(root);
    const std::size_t fit = std::max<std::size_t>(1, kSampleBytes / (dim * sizeof(float)));
    const curate::Clusters clusters = curate::Clusters::find(
        draw_vectors(std::min(fit, kSampleOfCluster * wanted)), dim, wanted, seed_, slots);
    struct Waiting {
      std::string key;
      std::uint32_t number;
    };
    std::vector<Waiting> waiting;
    std::vector<float> rows;
    const auto flush = [&] {
      const auto found = clusters.nearest(rows, slots);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const std::string value = std::to_string(found[i].cluster);
        put(value, waiting[i].key, waiting[i].number);
        const auto better = std::pair(-found[i].cosine, waiting[i].key);
        const auto at = nearest_.emplace(value, better).first;
        at->second = std::min(at->second, better);
      }
      waiting.clear();
      rows.clear();
    };
    each([&](std::uint32_t number, const std::string& key, const Note& note) {
      if (note.text.empty()) return put({}, key, number);
      waiting.push_back({key, number});
      append_floats(note.text, rows);
      if (rows.size() * sizeof(float) >= kPortionBytes) flush();
    });
    flush();
  }

  ItemStore& items_;
  const BalanceOptions& options_;
  std::size_t number_;
  std::uint64_t seed_;
  io::Sorter sorted_;
  io::ScratchFile sizes_;  // Numbers of samples, in the order of the values.
  double weights_ = 0;
  // Of each cluster the negative cosine and the key of the sample nearest to the centre.
  std::map<std::string, std::pair<float, std::string>> nearest_;
  Balanced told_;
};

void warn_of_many_values(const Balanced& told) {
  constexpr std::uint64_t kFew = 20;
  if (told.samples >= kFew && told.values * 2 > told.samples)
    log_warning("--balance: '{}' has {} values in {} samples, so it leaves out almost nothing",
                told.rule.name, told.values, told.samples);
}

}  // namespace

std::vector<Balanced> balance(ItemStore& items, const BalanceOptions& options, std::uint64_t seed,
                              const VectorNames& encoders, share::Slots& slots, LeftOutList& list) {
  std::vector<Rule> rules;
  rules.reserve(options.rules.size());
  for (std::size_t r = 0; r < options.rules.size(); ++r)
    rules.emplace_back(items, options, r, seed).sort(encoders, slots);
  std::vector<bool> out(items.size());
  for (Rule& rule : rules)
    rule.leave_out(out, [&](const LeftOut& sample) { list.add(sample); });
  std::vector<Balanced> told;
  for (Rule& rule : rules) {
    told.push_back(rule.tell(out));
    warn_of_many_values(told.back());
  }
  for (std::uint32_t number = 0; number < out.size(); ++number)
    if (out[number]) items.drop(number);
  return told;
}

}  // namespace vfm::dataset
