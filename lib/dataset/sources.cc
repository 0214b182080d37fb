// SPDX-License-Identifier: Apache-2.0
#include "dataset/sources.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/philox.h"
#include "curate/split.h"
#include "io/packed.h"

namespace vfm::dataset {
namespace {

/// A record of `facts_`.
struct SourceFacts {
  std::uint64_t key;
  std::uint64_t samples;
};

template <class T>
std::string_view bytes_of_value(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

void for_each_fact(const io::ScratchFile& file,
                   const std::function<void(std::uint32_t source, const SourceFacts&)>& use) {
  io::ScratchReader reader(file);
  for (std::uint32_t source = 0; !reader.ended(); ++source) {
    SourceFacts facts;
    std::memcpy(&facts, reader.bytes(sizeof facts).data(), sizeof facts);
    use(source, facts);
  }
}

}  // namespace

Sources::Sources(ItemStore& items, const DuplicatePairs& pairs, const ShardOptions& options,
                 KnownSources& known, const WithoutList& without)
    : items_(items),
      options_(options),
      known_(known),
      without_(without),
      facts_(items.folder()),
      source_of_(items.folder()) {
  number_sources();
  if (!pairs.empty()) join(pairs);
}

std::uint8_t Sources::part_named(const std::string& split) const {
  for (std::size_t p = 0; p < options_.split.size(); ++p)
    if (options_.split[p].name == split) return static_cast<std::uint8_t>(p);
  return kNoPart;
}

void Sources::walk(const UseRun& use_run, const UseSource& use_source) {
  std::uint32_t number = 0;
  std::optional<std::string> name;
  std::optional<KnownSource> source;  // From the first run of `name` that has an item.
  const auto end = [&] {
    if (source) use_source(number++, *source);
    source.reset();
  };
  items_.for_each_source_run([&](const Run& run) {
    if (!name || *name != run.source) {
      end();
      name = run.source;
    }
    bool there = false;
    for (std::uint64_t i = 0; i < run.count && !there; ++i)
      there = items_.is_there(run.first + static_cast<std::uint32_t>(i));
    // Of several paths the first in the order of runs is taken, which does not depend on the input.
    if (there && !source) source = {run.source, run.path, run.content, {}};
    if (there) use_run(number, run);
  });
  end();
}

void Sources::number_sources() {
  io::Sorter of_items(items_.folder());  // (first item, count, source)
  io::Sorter by_path(items_.folder());
  KnownSources::Names names(known_);
  std::string record, last_path;
  std::optional<std::uint32_t> last;
  SourceFacts facts{0, 0};
  const auto find = [&](const std::string& name) -> const KnownSource* {
    while (names.front() && names.front()->name < name)
      names.pop();
    return names.front() && names.front()->name == name ? names.front() : nullptr;
  };
  walk(
      [&](std::uint32_t source, const Run& run) {
        record.clear();
        io::put_ordered(record, run.first, 4);
        io::put_number(record, run.count);
        io::put_number(record, source);
        of_items.add(record);
        for (std::uint64_t i = 0; i < run.count; ++i)
          facts.samples += items_.is_kept(run.first + static_cast<std::uint32_t>(i));
        const bool first = last != source;
        if (!known_.empty()) {
          if (const KnownSource* known = find(run.source)) {
            any_known_ = any_known_ || !run.by_key || known->content == run.content;
          } else if (!run.path.empty() && (first || run.path != last_path)) {
            record.clear();
            io::put_ordered_text(record, run.path);
            io::put_number(record, source);
            io::put_number(record, first);
            by_path.add(record);
          }
        }
        last = source;
        last_path = run.path;
      },
      [&](std::uint32_t, const KnownSource& source) {
        facts.key = random_key(source.name);
        facts_.append(bytes_of_value(facts));
        facts.samples = 0;
        const KnownSource* known = known_.empty() ? nullptr : find(source.name);
        parts_.push_back(known ? part_named(known->split) : kNoPart);
      });
  if (by_path.records() > 0) {
    KnownSources::Paths paths(known_);
    io::Sorter::Stream stream = by_path.sorted();
    for (std::string_view rest; stream.next(rest);) {
      const auto split = paths.find(io::take_ordered_text(rest));
      if (!split) continue;
      any_known_ = true;
      const std::uint64_t source = io::take_number(rest);
      if (io::take_number(rest) && !split->empty()) parts_[source] = part_named(*split);
    }
  }
  io::Sorter::Stream stream = of_items.sorted();
  std::uint32_t next = 0;
  const auto fill = [&](std::uint64_t until, std::uint32_t source) {
    for (; next < until; ++next)
      source_of_.append(bytes_of_value(source));
  };
  for (std::string_view rest; stream.next(rest);) {
    const std::uint64_t first = io::take_ordered(rest, 4), count = io::take_number(rest);
    fill(first, 0);  // Items that are gone. Their source is never read.
    fill(first + count, static_cast<std::uint32_t>(io::take_number(rest)));
  }
  fill(items_.size(), 0);
}

std::uint32_t Sources::source_of(std::uint32_t item) const {
  std::uint32_t source = 0;
  source_of_.read(&source, sizeof source, std::uint64_t{item} * sizeof source);
  return source;
}

std::size_t Sources::part_of_item(std::uint32_t item) {
  constexpr std::uint32_t kBlock = 1 << 16;
  if (block_.empty() || item < block_begin_ || item >= block_begin_ + block_.size()) {
    block_begin_ = item;
    block_.resize(std::min<std::size_t>(kBlock, items_.size() - item));
    source_of_.read(block_.data(), block_.size() * sizeof block_[0],
                    std::uint64_t{item} * sizeof block_[0]);
  }
  return parts_[block_[item - block_begin_]];
}

std::uint32_t Sources::root(std::uint32_t source) {
  if (!joined_) return source;
  while (above_[source] != 0) {
    const std::uint32_t above = above_[source] - 1;
    if (above_[above] != 0) above_[source] = above_[above];
    source = above;
  }
  return source;
}

/// The source with the smallest name becomes the root, so that the order of joins does not matter.
void Sources::join(const DuplicatePairs& pairs) {
  joined_ = true;
  above_ = SparseArray<std::uint32_t>(parts_.size());
  pairs.for_each([&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t x = root(source_of(a)), y = root(source_of(b));
    if (x != y) above_[std::max(x, y)] = std::min(x, y) + 1;
  });
}

/// Gives new sources the split of the known sources with the same contents. If these are in several
/// splits, the last one is taken: train usually comes first, and must not get contents of the
/// others.
void Sources::spread_parts() {
  if (!joined_) return;
  SparseArray<std::uint8_t> of_root(parts_.size());  // One more than the part, 0 if none.
  std::size_t torn = 0;
  std::uint32_t example = 0;
  for (std::uint32_t s = 0; s < parts_.size(); ++s) {
    if (parts_[s] == kNoPart) continue;
    const std::uint32_t r = root(s);
    const auto part = static_cast<std::uint8_t>(parts_[s] + 1);
    if (of_root[r] != 0 && of_root[r] != part && torn++ == 0) example = s;
    of_root[r] = std::max(of_root[r], part);
  }
  if (torn > 0) warn_torn(torn, example);
  for (std::uint32_t s = 0; s < parts_.size(); ++s)
    if (parts_[s] == kNoPart)
      if (const std::uint8_t part = of_root[root(s)]) parts_[s] = part - 1;
}

void Sources::warn_torn(std::size_t torn, std::uint32_t source) {
  std::string example;
  walk([](std::uint32_t, const Run&) {},
       [&](std::uint32_t s, const KnownSource& facts) {
         if (s == source) example = facts.path.empty() ? facts.name : facts.path;
       });
  log_warning(
      "{} sources hold duplicates of sources of another split, '{}' is one; the earlier run "
      "assigned them, so they stay, and new sources with the same contents go to '{}'; --force "
      "assigns all sources again",
      torn + 1, example, options_.split.back().name);
}

void Sources::warn_empty(const std::string& split, std::uint64_t fresh, std::uint64_t known,
                         bool together) {
  if (fresh == 0 && known > 0)
    return log_warning(
        "split '{}' is empty: an earlier run assigned all sources, and they stay; --force assigns "
        "all sources again",
        split);
  log_warning("split '{}' is empty: there {} only {} source{} to assign{}{}", split,
              fresh == 1 ? "is" : "are", fresh, fresh == 1 ? "" : "s",
              known > 0 ? "; an earlier run assigned the others" : "",
              together ? "; sources that hold duplicates of one another count as one" : "");
}

void Sources::assign() {
  spread_parts();
  // Samples of the sources that were joined to a root.
  SparseArray<std::uint32_t> more(joined_ ? parts_.size() : 0);
  std::uint64_t fresh = 0, known = 0;
  bool together = false;
  if (joined_)
    for_each_fact(facts_, [&](std::uint32_t s, const SourceFacts& facts) {
      if (const std::uint32_t at = place(s); at != s) {
        more[at] += static_cast<std::uint32_t>(facts.samples);
        together = true;
      }
    });
  io::Sorter drawn(items_.folder());
  std::string record;
  for_each_fact(facts_, [&](std::uint32_t s, const SourceFacts& facts) {
    const std::uint64_t samples = facts.samples + (joined_ ? more[s] : 0);
    if (place(s) != s || samples == 0) return;
    ++(parts_[s] == kNoPart ? fresh : known);
    record.clear();
    io::put_ordered(record, curate::split_draw(options_.seed, facts.key), 4);
    io::put_ordered(record, facts.key, 8);
    io::put_number(record, s);
    io::put_number(record, samples);
    io::put_ordered(record, parts_[s], 1);
    drawn.add(record);
  });
  std::vector<std::uint64_t> sources(options_.split.size());
  const auto each = [&](const auto& use) {
    io::Sorter::Stream stream = drawn.sorted();
    for (std::string_view rest; stream.next(rest);) {
      io::take_ordered(rest, 4);
      curate::SplitSource source;
      source.key = io::take_ordered(rest, 8);
      const std::uint64_t number = io::take_number(rest);
      source.samples = io::take_number(rest);
      if (const std::uint64_t part = io::take_ordered(rest, 1); part != kNoPart) source.part = part;
      use(number, source);
    }
  };
  curate::assign_split(each, options_.split, parts_);
  each([&](std::size_t number, const curate::SplitSource&) { ++sources[parts_[number]]; });
  for (std::size_t p = 0; p < options_.split.size(); ++p)
    if (sources[p] == 0) warn_empty(options_.split[p].name, fresh, known, together);
  for (std::uint32_t s = 0; s < parts_.size(); ++s)
    if (parts_[s] == kNoPart) parts_[s] = parts_[root(s)];
}

void Sources::write(io::TextWriter& file) {
  const bool remembers = options_.split.size() > 1;
  KnownSources::Names names(known_);
  const auto put = [&](const KnownSource& source) { file.add(source.line()); };
  const auto remember = [&](const KnownSource& source) {
    if (remembers && !without_.has(source.name) && !without_.has(source.path)) put(source);
  };
  walk([](std::uint32_t, const Run&) {},
       [&](std::uint32_t s, const KnownSource& facts) {
         for (; names.front() && names.front()->name <= facts.name; names.pop())
           if (names.front()->name != facts.name) remember(*names.front());
         if (parts_[s] == kNoPart) return;  // No sample of it stays, and no earlier run had it.
         KnownSource source = facts;
         source.split = options_.split[parts_[s]].name;
         put(source);
       });
  for (; names.front(); names.pop())
    remember(*names.front());
}

}  // namespace vfm::dataset
