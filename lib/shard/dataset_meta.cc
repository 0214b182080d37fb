// SPDX-License-Identifier: Apache-2.0
#include "shard/dataset_meta.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/text_writer.h"
#include "shard/dataset_card.h"
#include "shard/energon_index.h"
#include "shard/sample_list.h"
#include "shard/writer.h"

namespace vfm::shard {
namespace {

class Words {
 public:
  Words(std::string_view line, const std::string& path) : rest_(line), path_(path) {}
  bool empty() const { return rest_.empty(); }
  std::string_view word() {
    const std::size_t blank = rest_.find(' ');
    const std::string_view found = rest_.substr(0, blank);
    rest_ = blank == std::string_view::npos ? std::string_view() : rest_.substr(blank + 1);
    if (found.empty()) bad();
    return found;
  }
  std::uint64_t number() {
    const std::string_view text = word();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) bad();
    return value;
  }
  [[noreturn]] void bad() const { fail("'{}' is not a shard index", path_); }

 private:
  std::string_view rest_;
  const std::string& path_;
};

std::vector<std::uint64_t> read_offsets(const std::string& path) {
  const std::string bytes = io::read_file(path);
  if (bytes.size() % 8 != 0 || bytes.size() < 16) fail("'{}' is not a shard index", path);
  std::vector<std::uint64_t> offsets(bytes.size() / 8);
  std::memcpy(offsets.data(), bytes.data(), bytes.size());
  return offsets;
}

std::vector<std::string> splits_of(const DatasetShards& shards) {
  std::vector<std::string> names;
  shards.for_each([&](const DatasetShard& shard) {
    if (std::ranges::find(names, shard.split) == names.end()) names.push_back(shard.split);
  });
  return names;
}

/// Takes sorted paths and joins those that differ only in the six digits before ".tar" and count up
/// by one.
class NumberedRuns {
 public:
  using Use = std::function<void(const std::string& path)>;
  explicit NumberedRuns(Use use) : use_(std::move(use)) {}

  void add(const std::string& path) {
    const long number = number_of(path);
    if (number >= 0 && number == last_ + 1 && head_of(path) == head_of(first_)) {
      last_ = number;
      return;
    }
    finish();
    first_ = path;
    last_ = number;
  }
  void finish() {
    if (first_.empty()) return;
    const long first = number_of(first_);
    if (first == last_)
      use_(first_);
    else
      use_(fmt::format("{}{{{:06}..{:06}}}.tar", head_of(first_), first, last_));
    first_.clear();
    last_ = kNone;
  }

 private:
  static constexpr std::size_t kDigits = 6, kTail = kDigits + 4;
  static constexpr long kNone = -2;  // No number is kNone + 1.

  static long number_of(const std::string& path) {
    if (path.size() < kTail || !path.ends_with(".tar")) return kNone;
    long value = 0;
    for (const char c : std::string_view(path).substr(path.size() - kTail, kDigits)) {
      if (c < '0' || c > '9') return kNone;
      value = value * 10 + (c - '0');
    }
    return value;
  }
  static std::string_view head_of(std::string_view path) {
    return path.substr(0, path.size() - kTail);
  }

  Use use_;
  std::string first_;  // First path of the run, "" if there is no run.
  long last_ = kNone;
};

/// Writes the same text as dump_json_pretty() of
/// {"energon_version":null,"shard_counts":{PATH:SAMPLES,…}}.
void write_info(const std::string& path, const DatasetShards& shards) {
  io::TextWriter out(path);
  out.add("{\n  \"energon_version\": null,\n  \"shard_counts\": {");
  const char* before = "\n";
  shards.for_each([&](const DatasetShard& shard) {
    out.add(fmt::format("{}    {}: {}", before, dump_json(Json(plain_tar_path(shard.path))),
                        shard.samples));
    before = ",\n";
  });
  out.add(shards.size() == 0 ? "}\n}\n" : "\n  }\n}\n");
  out.update();
}

void write_split_yaml(const std::string& path, const DatasetShards& shards) {
  io::TextWriter out(path);
  out.add("split_parts:\n");
  for (const std::string& split : splits_of(shards)) {
    out.add("  " + yaml_quoted(split) + ":\n");
    NumberedRuns runs([&](const std::string& run) { out.add("  - " + yaml_quoted(run) + "\n"); });
    shards.for_each([&](const DatasetShard& shard) {
      if (shard.split == split) runs.add(plain_tar_path(shard.path));
    });
    runs.finish();
  }
  out.add("exclude: []\n");
  out.update();
}

/// Energon writes a random UUID (version 4, RFC 9562). Ours has this form, but is computed from the
/// contents.
std::string content_uuid(const DatasetShards& shards) {
  Hasher hasher;
  hasher.update("vfm energon metadata 1\n");
  shards.for_each([&](const DatasetShard& shard) {
    hasher.update(fmt::format("{}\n{}\n{}\n", shard.path, shard.split, shard.xxh3));
  });
  std::string hex = hasher.hex128();
  hex[12] = '4';
  hex[16] = "89ab"[(hex[16] <= '9' ? hex[16] - '0' : hex[16] - 'a' + 10) % 4];
  for (const std::size_t at : {20u, 16u, 12u, 8u})
    hex.insert(at, "-");
  return hex;
}

Json wids_entry(const DatasetShard& shard, const std::string& url) {
  return {{"url", plain_tar_path(url)}, {"nsamples", shard.samples}, {"filesize", shard.bytes}};
}

Json wids_index(const std::string& name, Json list) {
  return {{"__kind__", "wids-shard-index-v1"},
          {"wids_version", 1},
          {"shardlist", std::move(list)},
          {"name", name}};
}

}  // namespace

void for_each_indexed(const std::string& tar,
                      const std::function<void(const IndexedSample&)>& use) {
  const std::string index_path = dali_index_path(tar);
  const std::vector<std::uint64_t> offsets = read_offsets(energon_index_path(tar));
  const std::string text = io::read_file(index_path);
  std::string_view rest = text;
  IndexedSample sample;
  for (std::size_t row = 0; row < offsets.size(); ++row) {
    const std::size_t end = rest.find('\n');
    Words words(rest.substr(0, end), index_path);
    if (end == std::string_view::npos) words.bad();
    rest.remove_prefix(end + 1);
    if (row == 0) {
      if (words.word() != "v1.2" || words.number() != offsets.size() - 1) words.bad();
      continue;
    }
    sample.members.clear();
    sample.offset = offsets[row - 1];
    sample.size = offsets[row] - offsets[row - 1];
    while (!words.empty()) {
      IndexedMember member;
      member.extension = words.word();
      member.offset = words.number();
      member.size = words.number();
      const std::string_view name = words.word();
      if (name.size() <= member.extension.size() + 1) words.bad();
      sample.key = name.substr(0, name.size() - member.extension.size() - 1);
      sample.members.push_back(std::move(member));
    }
    use(sample);
  }
  if (!rest.empty()) Words(rest, index_path).bad();
}

void write_energon_meta(const std::string& directory, const DatasetShards& shards,
                        const MediaOf& media, bool list) {
  const std::string meta = io::join_path(directory, ".nv-meta");
  io::make_directories(meta);
  const auto file = [&](const char* name) { return io::join_path(meta, name); };

  write_info(file(".info.json"), shards);
  write_split_yaml(file("split.yaml"), shards);
  io::update_file(file("dataset.yaml"),
                  "__module__: megatron.energon\n__class__: CrudeWebdataset\n");

  // The UUID is written last, so the index and the list are complete if the UUID fits.
  const std::string uuid = content_uuid(shards) + "\n";
  if (io::file_exists(file("index.sqlite")) && io::file_exists(file("index.uuid")) &&
      io::read_file(file("index.uuid")) == uuid &&
      (!list || io::file_exists(sample_list_path(directory))))
    return;
  std::optional<SampleListWriter> samples;
  if (list) samples.emplace(sample_list_path(directory));
  write_energon_index(directory, file("index.sqlite"), shards, media,
                      samples ? &*samples : nullptr);
  if (samples) samples->finish();
  io::write_file(file("index.uuid"), uuid);
}

void write_wids(const std::string& directory, const std::string& name,
                const std::vector<DatasetShard>& shards) {
  Json all = Json::array();
  for (const DatasetShard& shard : shards)
    all.push_back(wids_entry(shard, shard.path));
  io::update_file(io::join_path(directory, "wids.json"), dump_json_pretty(wids_index(name, all)));
  for (const std::string& split : splits_of(shards)) {
    Json list = Json::array();
    for (const DatasetShard& shard : shards)
      if (shard.split == split)
        list.push_back(wids_entry(shard, shard.path.starts_with(split + "/")
                                             ? shard.path.substr(split.size() + 1)
                                             : "../" + shard.path));
    io::update_file(io::join_path(io::join_path(directory, split), "wids.json"),
                    dump_json_pretty(wids_index(name + "-" + split, list)));
  }
}

}  // namespace vfm::shard
