// SPDX-License-Identifier: Apache-2.0
#include "dataset/item_store.h"

#include <limits>
#include <utility>

#include "base/error.h"
#include "base/half.h"
#include "base/philox.h"
#include "base/stop.h"
#include "curate/vectors/cell_search.h"
#include "curate/vectors/dedup.h"
#include "io/packed.h"

namespace vfm::dataset {
namespace {

constexpr std::size_t kKeysMemory = std::size_t{24} << 20;  // enough for a million keys
constexpr std::size_t kLongestNames = std::size_t{64} << 10;

/// Returns 'h' and the values as halves if these have exactly the same values, else 'f' and floats.
std::string pack_embedding(const std::vector<float>& values) {
  if (values.empty()) return {};
  std::vector<std::uint16_t> halves(values.size());
  std::vector<float> again(values.size());
  floats_to_halves(values, halves);
  halves_to_floats(halves, again);
  std::string out = "f";
  if (std::memcmp(again.data(), values.data(), values.size() * sizeof(float)) == 0) {
    out = "h";
    out.append(reinterpret_cast<const char*>(halves.data()), halves.size() * sizeof halves[0]);
  } else {
    out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
  }
  return out;
}

}  // namespace

std::uint64_t near_bytes(std::uint64_t dim) {
  // The memory of curate/vectors/dedup.h for one vector: the dimensions padded to a multiple of 64,
  // one number for each 64 of them, the first 64 once more, and lists.
  constexpr std::uint64_t kHead = 64, kLists = 160;
  const std::uint64_t width = curate::near_width(dim);
  return (width + width / kHead + kHead) * sizeof(float) + kLists;
}

std::uint64_t near_bytes_in_clusters() {
  return curate::cell_bytes(curate::kLeastSketch) + kPlaceInClusters;
}

void ItemBatch::add(const Item& item) {
  if (item.key.size() + item.source.size() + item.path.size() > kLongestNames)
    fail("'{}' has a source of {} bytes, over {}", item.key.substr(0, 100),
         item.source.size() + item.path.size(), kLongestNames);
  std::string& out = packed_;
  out.clear();
  for (const std::string* text : {&item.key, &item.source, &item.path})
    io::put_text(out, *text);
  io::put_number(out, shapes_.number(item.shape));
  io::put_number(out, item.encoder);
  io::put_text(out, pack_embedding(item.embedding));
  io::put_text(out, item.notes);
  put_facts(out, item);
  items_.append_text(out);
}

ItemStore::ItemStore(const std::string& folder, std::uint64_t most_near_bytes, bool all_pairs,
                     bool notes)
    : folder_(folder),
      near_left_(most_near_bytes),
      all_pairs_(all_pairs),
      keeps_notes_(notes),
      items_(folder),
      offsets_(folder),
      embedding_bytes_(folder),
      notes_(folder),
      keys_(folder, kKeysMemory),
      source_runs_(folder) {}

void ItemStore::take(const ItemBatch& batch, std::uint32_t shard) {
  take(batch.shapes(), io::ScratchReader(batch.items()), shard);
}

void ItemStore::take(const Shapes& shapes, io::ScratchReader items, std::uint32_t shard) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    numbers.push_back(shapes_.number(shapes[i]));
  std::string record;
  Item item;
  for (std::string_view rest; items.text(rest);) {
    if (count_ == std::numeric_limits<std::uint32_t>::max())
      fail("more than {} samples; make several datasets of them", count_);
    for (std::string* text : {&item.key, &item.source, &item.path})
      *text = io::take_text(rest);
    const std::uint32_t shape = numbers.at(io::take_number(rest));
    const std::uint64_t encoder = io::take_number(rest);
    const std::string_view embedding = io::take_text(rest), notes = io::take_text(rest);
    if (keeps_notes_) notes_.append_text(notes);
    if (!embedding.empty()) take_embedding(embedding, encoder);
    record.clear();
    io::put_ordered(record, random_key(item.key), 8);
    io::put_ordered(record, count_, 4);
    keys_.add(record);
    if (item.named_by_key()) {
      std::string_view facts = rest;
      item.content = io::hash_text(io::take_hash(facts));
    }
    note_source(item);

    record.clear();
    io::put_text(record, item.key);
    io::put_number(record, shape);
    io::put_number(record, shard);
    record += rest;
    const std::uint64_t offset = items_.size();
    offsets_.append({reinterpret_cast<const char*>(&offset), sizeof offset});
    items_.append_text(record);
    ++count_;
  }
}

void ItemStore::take_embedding(std::string_view packed, std::uint64_t encoder) {
  const bool halves = packed.front() == 'h';
  packed.remove_prefix(1);
  const std::uint64_t dim = packed.size() / (halves ? sizeof(std::uint16_t) : sizeof(float));
  const std::uint64_t bytes = all_pairs_ ? near_bytes(dim) : near_bytes_in_clusters();
  if (bytes > near_left_)
    fail_usage(
        "more than {} samples with an embedding of {} numbers: comparing {} would take more memory "
        "than this version gives it; {}--keep-near-duplicates drops exact duplicates alone",
        embeddings_.size(), dim, all_pairs_ ? "all of them" : "them, even by clusters,",
        all_pairs_ ? "--duplicate-method clusters takes less, and " : "");
  near_left_ -= bytes;
  embeddings_.push_back(
      {count_, halves, static_cast<std::uint32_t>(dim), encoder, embedding_bytes_.size()});
  embedding_bytes_.append(packed);
}

void ItemStore::note_source(const Item& item) {
  const bool by_key = item.named_by_key();
  if (run_.count > 0 && !by_key && !run_.by_key && run_.source == item.source &&
      run_.path == item.path) {
    ++run_.count;
    return;
  }
  end_source();
  run_ = {item.source, item.path, count_, 1, by_key ? item.content : "", by_key};
}

void ItemStore::end_source() {
  if (run_.count == 0) return;
  std::string record;
  io::put_ordered_text(record, run_.source);
  io::put_ordered_text(record, run_.path);
  io::put_ordered(record, run_.first, 4);
  io::put_number(record, run_.count);
  if (run_.by_key) io::put_hash(record, run_.content);
  source_runs_.add(record);
  run_ = {};
}

void ItemStore::settle_keys(
    const std::function<void(std::uint32_t, const Item&, const Item&)>& again) {
  end_source();
  source_runs_.park();
  gone_.resize(count_);
  dropped_.resize(count_);
  {
    io::Sorter::Stream stream = keys_.sorted();
    std::vector<std::uint32_t> firsts;  // Samples with this hash whose keys differ.
    std::uint64_t last = 0;
    for (std::string_view record; stream.next(record);) {
      const std::uint64_t hash = io::take_ordered(record, 8);
      const auto number = static_cast<std::uint32_t>(io::take_ordered(record, 4));
      if (firsts.empty() || hash != last) {
        firsts = {number};
        last = hash;
        continue;
      }
      const Item item = get(number);
      bool is_first = true;
      for (const std::uint32_t candidate : firsts) {
        const Item first = get(candidate);
        if (first.key != item.key) continue;
        is_first = false;
        gone_[number] = true;
        ++gone_count_;
        again(number, item, first);
        break;
      }
      if (is_first) firsts.push_back(number);
    }
  }
  keys_ = io::Sorter(folder_);
}

Item ItemStore::get(std::uint32_t number) const {
  std::uint64_t range[2] = {0, items_.size()};
  const bool last = number + 1 == count_;
  offsets_.read(range, (last ? 1 : 2) * sizeof range[0], std::uint64_t{number} * sizeof range[0]);
  std::string bytes(range[1] - range[0], '\0');
  items_.read(bytes.data(), bytes.size(), range[0]);
  std::string_view rest = bytes;
  rest = io::take_text(rest);
  Item item;
  item.key = io::take_text(rest);
  item.shape = shapes_[io::take_number(rest)];
  item.shard = static_cast<std::uint32_t>(io::take_number(rest));
  take_facts(rest, item);
  return item;
}

void ItemStore::for_each_kept_packed(const UsePacked& use) const {
  io::ScratchReader reader(items_);
  std::string key;
  std::string_view rest;
  for (std::uint32_t number = 0; reader.text(rest); ++number) {
    constexpr std::uint32_t kStopCheck = 1 << 16;
    if (number % kStopCheck == 0) check_stop();
    if (!is_kept(number)) continue;
    key = io::take_text(rest);
    const auto shape = static_cast<std::uint32_t>(io::take_number(rest));
    const auto shard = static_cast<std::uint32_t>(io::take_number(rest));
    use(number, key, shape, shard, rest);
  }
}

void ItemStore::for_each_kept(const std::function<void(std::uint32_t, const Item&)>& use) const {
  Item item;
  for_each_kept_packed([&](std::uint32_t number, const std::string& key, std::uint32_t shape,
                           std::uint32_t shard, std::string_view facts) {
    item.key = key;
    item.shape = shapes_[shape];
    item.shard = shard;
    take_facts(facts, item);
    use(number, item);
  });
}

void ItemStore::for_each_noted(
    const std::function<void(std::uint32_t, const std::string&, std::string_view)>& use) const {
  io::ScratchReader reader(notes_);
  std::string_view notes;
  std::uint32_t next = 0;
  for_each_kept_packed([&](std::uint32_t number, const std::string& key, std::uint32_t,
                           std::uint32_t, std::string_view) {
    for (; next <= number; ++next)
      if (!reader.text(notes)) io::fail_packed();
    use(number, key, notes);
  });
}

void ItemStore::forget_notes() {
  notes_ = io::ScratchFile(folder_);
}

void ItemStore::forget_sources() {
  source_runs_ = io::Sorter(folder_);
  for (io::ScratchFile* file : {&offsets_, &embedding_bytes_})
    *file = io::ScratchFile(folder_);
  embeddings_ = {};
}

void ItemStore::forget_items() {
  items_ = io::ScratchFile(folder_);
}

void ItemStore::read_embedding(const EmbeddingPlace& place, float* out) const {
  if (!place.halves) return embedding_bytes_.read(out, place.dim * sizeof *out, place.offset);
  std::vector<std::uint16_t> bits(place.dim);
  embedding_bytes_.read(bits.data(), bits.size() * sizeof bits[0], place.offset);
  halves_to_floats(bits, {out, place.dim});
}

void ItemStore::for_each_source_run(const std::function<void(const SourceRun&)>& use) {
  io::Sorter::Stream stream = source_runs_.sorted();
  SourceRun run;
  for (std::string_view record; stream.next(record);) {
    run.source = io::take_ordered_text(record);
    run.path = io::take_ordered_text(record);
    run.first = static_cast<std::uint32_t>(io::take_ordered(record, 4));
    run.count = io::take_number(record);
    run.by_key = !record.empty();
    run.content = run.by_key ? io::hash_text(io::take_hash(record)) : "";
    use(run);
  }
}

}  // namespace vfm::dataset
