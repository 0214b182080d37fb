// SPDX-License-Identifier: Apache-2.0
#include "columns/search/vector_index.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/xxh3.h"
#include "io/file.h"
#include "io/places.h"
#include "io/remote/address.h"
#include "io/remote/remote_file.h"

namespace vfm::columns {
namespace {

static_assert(std::endian::native == std::endian::little, "index files are little-endian");
static_assert(sizeof(IndexHeader) == 64 && sizeof(ListHead) == 24);

// An index never has more, so a file with more is damaged.
constexpr std::int64_t kMostLists = 1 << 16;
constexpr std::int64_t kMostRows = std::int64_t{1} << 32;

std::string text_of(const std::array<char, 16>& hash) {
  return {hash.data(), hash.size()};
}

std::uint64_t bounded(const Json& facts, const char* name, std::int64_t most) {
  const std::int64_t value = need_integer(facts, name, "its facts");
  if (value < 0 || value > most) fail("'{}' is {}", name, value);
  return static_cast<std::uint64_t>(value);
}

template <class T>
std::string_view bytes_of(std::span<const T> part) {
  return {reinterpret_cast<const char*>(part.data()), part.size_bytes()};
}

/// `folder` is the folder of the index, to which names of files are relative.
IndexedShard parse_shard(const Json& json, const std::string& folder, std::uint64_t first) {
  const auto named = [&](const std::string& name) { return io::named_from(folder, name); };
  IndexedShard shard;
  shard.path = named(need_string(json, "path", "a shard"));
  shard.tar = named(need_string(json, "vectors", "a shard"));
  shard.columns = json.at("columns");
  for (auto& [name, path] : shard.columns->items()) {
    if (!path.is_string()) fail("column '{}' is no path", name);
    path = named(path.get<std::string>());
  }
  for (const Json& file : json.at("files"))
    shard.files.push_back({named(need_string(file, "path", "a file")),
                           need_integer(file, "bytes", "a file"),
                           need_integer(file, "mtime", "a file")});
  shard.first = first;
  shard.rows = bounded(json, "rows", kMostRows);
  shard.hash = need_string(json, "xxh3", "a shard");
  return shard;
}

}  // namespace

IndexedFile file_state(const std::string& path) {
  if (io::is_remote(path)) {
    const std::shared_ptr<io::RemoteFile> object = io::RemoteFile::open_if_there(path);
    if (!object) return {path, -1, 0};
    const auto version = xxh3_64(object->version().data(), object->version().size());
    return {path, static_cast<std::int64_t>(object->size()),
            static_cast<std::int64_t>(version >> 1)};  // in place of a time
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {path, -1, 0};
  return {path, status.st_size, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

io::Record IndexedShard::record() const {
  return {"shard", Json{{"kind", "shard"}, {"path", path}, {"columns", columns}}, "'" + path + "'"};
}

std::string IndexedShard::changed() const {
  for (const IndexedFile& file : files) {
    const IndexedFile now = file_state(file.path);
    if (now.bytes < 0) return fmt::format("'{}' is not there any more", file.path);
    if (now != file) return fmt::format("'{}' has changed", file.path);
  }
  return {};
}

std::array<char, 16> index_hash(std::initializer_list<std::string_view> parts) {
  Hasher hasher;
  for (const std::string_view part : parts)
    hasher.update(part);
  std::array<char, 16> out;
  std::memcpy(out.data(), hasher.hex64().data(), out.size());
  return out;
}

IndexLayout::IndexLayout(const IndexModel& model, std::uint64_t row_count,
                         std::uint64_t entry_count)
    : rows(sizeof(IndexHeader)),
      lists(rows + row_count * sizeof(std::uint64_t)),
      centres(lists + model.lists * sizeof(ListHead)),
      words(centres + model.lists * model.dim * sizeof(float)),
      entries(words + kCodeWords * model.dim * sizeof(float)),
      codes(entries + entry_count * sizeof(std::uint32_t)),
      end(codes + entry_count * code_bytes(model.dim)) {}

Json index_facts(const std::string& folder, const IndexModel& model,
                 const std::vector<IndexedShard>& shards, std::uint64_t rows, std::uint64_t entries,
                 const std::string& model_hash) {
  const auto name = [&](const std::string& path) { return io::name_from(folder, path); };
  Json listed = Json::array();
  for (const IndexedShard& shard : shards) {
    Json files = Json::array();
    for (const IndexedFile& file : shard.files)
      files.push_back({{"path", name(file.path)}, {"bytes", file.bytes}, {"mtime", file.mtime}});
    Json columns = Json::object();
    for (const auto& [column, path] : shard.columns->items())
      columns[column] = name(path.get<std::string>());
    listed.push_back({{"path", name(shard.path)},
                      {"columns", std::move(columns)},
                      {"vectors", name(shard.tar)},
                      {"files", std::move(files)},
                      {"rows", shard.rows},
                      {"xxh3", shard.hash}});
  }
  return {{"vectors", to_string(model.kind)},
          {"encoder", model.encoder},
          {"dim", model.dim},
          {"lists", model.lists},
          {"trained", model.trained},
          {"rows", rows},
          {"entries", entries},
          {"model_xxh3", model_hash},
          {"shards", std::move(listed)}};
}

bool is_index_file(const std::string& path) {
  const io::MappedFile file(path);
  return file.text().starts_with({kIndexMagic.data(), kIndexMagic.size()});
}

VectorIndex::VectorIndex(const std::string& path) : path_(path), file_(path) {
  const std::string_view all = file_.text();
  IndexHeader header;
  if (all.size() < sizeof header || std::memcmp(all.data(), kIndexMagic.data(), 8) != 0)
    fail("'{}' is not an index of vfm-embed", path);
  std::memcpy(&header, all.data(), sizeof header);
  if (header.version != kIndexVersion)
    fail("'{}' is an index of version {}, and this program reads {}; make it again with --force",
         path, header.version, kIndexVersion);
  if (index_hash({all.substr(0, sizeof header - 16)}) != header.header_hash) damaged("its header");
  if (header.facts_at > all.size() || header.facts_bytes != all.size() - header.facts_at)
    damaged("its size");
  const std::string_view facts = all.substr(header.facts_at);
  if (index_hash({facts}) != header.facts_hash) damaged("what it says of itself");
  try {
    read_facts(parse_json(facts, "its facts"));
  } catch (const std::exception& error) {
    fail("'{}' is not as vfm-embed writes an index: {}", path, error.what());
  }
}

void VectorIndex::read_facts(const Json& facts) {
  const std::string kind = need_string(facts, "vectors", "its facts");
  if (kind != "video" && kind != "text") fail("'vectors' is '{}'", kind);
  model_.kind = kind == "video" ? VectorKind::video : VectorKind::text;
  model_.encoder = facts.at("encoder");
  model_.dim = bounded(facts, "dim", kMostIndexDim);
  model_.lists = bounded(facts, "lists", kMostLists);
  model_.trained = bounded(facts, "trained", kMostRows);
  rows_ = bounded(facts, "rows", kMostRows);
  entries_ = bounded(facts, "entries", kMostRows);
  IndexHeader header;
  std::memcpy(&header, file_.bytes().data(), sizeof header);
  const IndexLayout at(model_, rows_, entries_);
  if (model_.dim == 0 || model_.lists == 0 || at.end != header.facts_at)
    fail("its parts do not have the size that they should");
  const std::string_view made_by = file_.text().substr(at.lists, at.entries - at.lists);
  if (text_of(index_hash({made_by})) != need_string(facts, "model_xxh3", "its facts"))
    fail("its lists are damaged");
  // Unit vectors and their residuals have small numbers, so no sum of products is infinite.
  for (const std::span<const float> numbers : {centres(), words()})
    for (const float value : numbers)
      if (!(std::abs(value) <= 4)) fail("its centres and words are not those of unit vectors");
  std::uint64_t rows = 0, entries = 0;
  for (const Json& json : facts.at("shards")) {
    shards_.push_back(parse_shard(json, io::dir_name(path_), rows));
    firsts_.push_back(rows);
    rows += shards_.back().rows;
    if (rows > rows_) break;
  }
  begins_.push_back(0);
  for (const ListHead& head : part<ListHead>(at.lists, model_.lists)) {
    if (head.entries > entries_ - entries) fail("its lists are longer than they should be");
    begins_.push_back(entries += head.entries);
  }
  if (rows != rows_ || entries != entries_) fail("its numbers do not fit each other");
  checked_lists_ = std::make_unique<std::atomic<bool>[]>(model_.lists);
  checked_shards_ = std::make_unique<std::atomic<bool>[]>(shards_.size());
}

template <class T>
std::span<const T> VectorIndex::part(std::uint64_t at, std::uint64_t count) const {
  return {reinterpret_cast<const T*>(file_.bytes().data() + at), count};
}

void VectorIndex::damaged(const char* what) const {
  fail("'{}' is damaged: {} is not as it was written; make it again with --force", path_, what);
}

std::span<const float> VectorIndex::centres() const {
  return part<float>(IndexLayout(model_, rows_, entries_).centres, model_.lists * model_.dim);
}

std::span<const float> VectorIndex::words() const {
  return part<float>(IndexLayout(model_, rows_, entries_).words, kCodeWords * model_.dim);
}

std::uint64_t VectorIndex::list_size(std::size_t list) const {
  return begins_[list + 1] - begins_[list];
}

VectorIndex::List VectorIndex::list(std::size_t list) const {
  const IndexLayout at(model_, rows_, entries_);
  const std::uint64_t code = code_bytes(model_.dim), begin = begins_[list];
  const auto rows =
      part<std::uint32_t>(at.entries + begin * sizeof(std::uint32_t), list_size(list));
  const auto codes = part<std::uint8_t>(at.codes + begin * code, rows.size() * code);
  const ListHead& head = part<ListHead>(at.lists, model_.lists)[list];
  if (!checked_lists_[list]) {
    if (index_hash({bytes_of(rows), bytes_of(codes)}) != head.hash) damaged("a list");
    checked_lists_[list] = true;
  }
  return {rows, codes.data()};
}

std::span<const std::uint64_t> VectorIndex::positions(std::size_t shard) const {
  const IndexedShard& of = shards_[shard];
  const auto rows =
      part<std::uint64_t>(sizeof(IndexHeader) + of.first * sizeof(std::uint64_t), of.rows);
  if (!checked_shards_[shard]) {
    if (text_of(index_hash({bytes_of(rows)})) != of.hash) damaged("where vectors stand");
    checked_shards_[shard] = true;
  }
  return rows;
}

std::size_t VectorIndex::shard_of(std::uint32_t row) const {
  if (row >= rows_) damaged("a row");
  const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), row);
  return static_cast<std::size_t>(after - firsts_.begin()) - 1;
}

}  // namespace vfm::columns
