// SPDX-License-Identifier: Apache-2.0
#include "data/sample_index.h"

#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/xxh3.h"

namespace vfm::data {
namespace {

class ListIndex final : public SampleIndex {
 public:
  explicit ListIndex(std::vector<Entry> entries) : entries_(std::move(entries)) {
    std::unordered_map<std::string, std::uint32_t> numbers;
    for (const Entry& entry : entries_) {
      form_of_.push_back(table_.add(entry));
      const auto [at, fresh] =
          numbers.try_emplace(entry.shard, static_cast<std::uint32_t>(shards_.size()));
      if (fresh) shards_.push_back(entry.shard);
      shard_of_.push_back(at->second);
    }
  }

  std::size_t size() const override { return entries_.size(); }
  std::span<const Form> forms() const override { return table_.forms(); }
  std::uint32_t form_of(std::size_t i) const override { return form_of_.at(i); }
  int text_tokens(std::size_t i) const override { return entries_.at(i).text_tokens; }
  SamplePlace place(std::size_t i) const override { return {shard_of_.at(i), entries_[i].row}; }
  std::string_view shard_name(std::uint32_t shard) const override { return shards_.at(shard); }
  std::uint32_t shards() const override { return static_cast<std::uint32_t>(shards_.size()); }
  std::uint64_t check(std::size_t i) const override {
    return entry_check(entries_.at(i).key, entries_[i].xxh3);
  }
  bool has_hash(std::size_t i) const override { return !entries_.at(i).xxh3.empty(); }
  Entry entry(std::size_t i) const override { return entries_.at(i); }
  std::vector<std::string> keys() const override {
    std::vector<std::string> keys;
    for (const Entry& entry : entries_)
      keys.push_back(entry.key);
    return keys;
  }
  std::string fingerprint(const Json& info) const override {
    Fingerprint fingerprint(info);
    for (std::size_t i = 0; i < entries_.size(); ++i)
      fingerprint.add(entries_[i], form_of_[i]);
    return fingerprint.hex128();
  }

 private:
  std::vector<Entry> entries_;
  FormTable table_;
  std::vector<std::uint32_t> form_of_, shard_of_;
  std::vector<std::string> shards_;
};

}  // namespace

Entry SampleIndex::sizes(std::size_t i) const {
  const Form& form = forms()[form_of(i)];
  const SamplePlace at = place(i);
  Entry entry;
  entry.shard = shard_name(at.shard);
  entry.row = at.row;
  entry.frames = form.frames;
  entry.height = form.height;
  entry.width = form.width;
  entry.fps = form.fps;
  entry.text_tokens = text_tokens(i);
  return entry;
}

std::string SampleIndex::name(std::size_t i) const {
  try {
    return entry(i).key;
  } catch (const Error&) {
    const SamplePlace at = place(i);
    return fmt::format("row {} of {}", at.row, shard_name(at.shard));
  }
}

std::unique_ptr<SampleIndex> list_index(std::vector<Entry> entries) {
  return std::make_unique<ListIndex>(std::move(entries));
}

std::uint64_t entry_check(std::string_view key, std::string_view xxh3) {
  std::string both;
  both.reserve(key.size() + 1 + xxh3.size());
  both.append(key).append("\n").append(xxh3);
  return xxh3_64(both.data(), both.size());
}

std::uint32_t FormTable::add(const Entry& entry) {
  const auto [at, fresh] =
      numbers_.try_emplace({entry.frames, entry.height, entry.width, entry.fps},
                           static_cast<std::uint32_t>(forms_.size()));
  if (fresh)
    forms_.push_back({.frames = entry.frames,
                      .height = entry.height,
                      .width = entry.width,
                      .fps = entry.fps,
                      .first = samples_});
  ++forms_[at->second].count;
  ++samples_;
  return at->second;
}

Fingerprint::Fingerprint(const Json& info) {
  hasher_.update(dump_json(info));
}

void Fingerprint::add(const Entry& entry, std::uint32_t form) {
  if (form >= sizes_.size()) sizes_.resize(form + 1);
  std::string& sizes = sizes_[form];
  if (sizes.empty())
    sizes = fmt::format(" {} {} {} {} ", entry.frames, entry.height, entry.width, entry.fps);
  line_.assign("\n").append(entry.key).append(sizes).append(std::to_string(entry.text_tokens));
  hasher_.update(line_);
}

}  // namespace vfm::data
