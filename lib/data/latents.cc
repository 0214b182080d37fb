// SPDX-License-Identifier: Apache-2.0
#include "data/latents.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "io/file.h"
#include "io/npy.h"
#include "shard/reader.h"

namespace vfm::data {
namespace {

/// More tars than this are not held open at once.
constexpr std::size_t kOpenShards = 64;
/// Bytes before a member of a tar, and before the values of an array.
constexpr std::int64_t kHeader = 512, kNpyHeader = 128;

int need_size(const Json& line, const char* name, int least) {
  const std::int64_t value = need_integer(line, name, "the entry");
  if (value < least || value > 1'000'000) fail("'{}' is {}", name, value);
  return static_cast<int>(value);
}

Entry entry_of(const Json& line) {
  if (!line.is_object()) fail("not a JSON object");
  Entry entry;
  entry.key = need_string(line, "key", "the entry");
  entry.shard = need_string(line, "shard", "the entry");
  if (entry.shard.empty() || entry.shard[0] == '.' || entry.shard.find('/') != std::string::npos)
    fail("'shard' is '{}', not a file name", entry.shard);
  entry.row = need_integer(line, "row", "the entry");
  if (entry.row < 0) fail("'row' is {}", entry.row);
  entry.frames = need_size(line, "frames", 1);
  entry.height = need_size(line, "height", 1);
  entry.width = need_size(line, "width", 1);
  entry.fps = need_number(line, "fps", "the entry");
  if (!std::isfinite(entry.fps) || entry.fps < 0) fail("'fps' is {}", entry.fps);
  entry.text_tokens = need_size(line, "text_tokens", 0);
  entry.xxh3 = get_string(line, "xxh3").value_or("");
  return entry;
}

std::vector<Entry> read_index(const std::string& path) {
  const io::MappedFile file(path);
  std::vector<Entry> entries;
  std::string_view rest = file.text();
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const std::string what = fmt::format("line {} of '{}'", number, path);
    if (end == std::string_view::npos) fail("{} has no end: the file is cut short", what);
    entries.push_back(parse_entry(parse_json(line, what), what));
    rest.remove_prefix(end + 1);
  }
  return entries;
}

const std::string& member(const shard::Sample& sample, const char* extension,
                          const std::string& what) {
  const std::string* data = sample.find(extension);
  if (data == nullptr) fail("{} has no '{}'", what, extension);
  return *data;
}

std::vector<float> read_latent(const std::string& bytes, const Entry& entry, std::int64_t channels,
                               const std::string& what) {
  const std::vector<std::int64_t> shape = {channels, entry.frames, entry.height, entry.width};
  if (io::parse_npy(bytes, what).shape != shape)
    fail("{}: the latent is not {} x {} x {} x {}", what, shape[0], shape[1], shape[2], shape[3]);
  return io::npy_floats(bytes, what);
}

std::vector<std::int32_t> read_codes(const std::string& bytes, const Entry& entry,
                                     std::int64_t vocabulary, const std::string& what) {
  const std::vector<std::int64_t> shape = {entry.frames, entry.height, entry.width};
  if (io::parse_npy(bytes, what).shape != shape)
    fail("{}: the codes are not {} x {} x {}", what, shape[0], shape[1], shape[2]);
  std::vector<std::int32_t> codes;
  for (const std::int64_t code : io::npy_integers(bytes, what)) {
    if (code < 0 || code >= vocabulary)
      fail("{} holds code {}, all should be below {}", what, code, vocabulary);
    codes.push_back(static_cast<std::int32_t>(code));
  }
  return codes;
}

}  // namespace

Json to_json(const Entry& entry) {
  Json json = {{"key", entry.key},       {"shard", entry.shard},
               {"row", entry.row},       {"frames", entry.frames},
               {"height", entry.height}, {"width", entry.width},
               {"fps", entry.fps},       {"text_tokens", entry.text_tokens}};
  if (!entry.xxh3.empty()) json["xxh3"] = entry.xxh3;
  return json;
}

Entry parse_entry(const Json& line, std::string_view what) {
  try {
    return entry_of(line);
  } catch (const Error& error) {
    fail("{}: {}", what, error.what());
  }
}

std::int64_t token_count(const Entry& entry, const Patch& patch) {
  return std::int64_t{entry.frames / patch.frames} * (entry.height / patch.height) *
         (entry.width / patch.width);
}

struct LatentSet::State {
  using Reader = std::shared_ptr<const shard::IndexedReader>;

  std::string folder;
  Json info;
  std::int64_t channels = 0, vocabulary = 0, text_width = 0;
  std::vector<Entry> entries;

  std::mutex mutex;                                // guards open
  std::list<std::pair<std::string, Reader>> open;  // the last used first
  std::mutex damage_mutex;                         // guards damage
  std::map<std::string, std::string> damage;       // of shards that were compared; "": none

  std::string name_of(const Entry& entry) const {
    return fmt::format("sample '{}' of '{}'", entry.key, io::join_path(folder, entry.shard));
  }

  /// What is wrong with a whole tar, by its notes; "" if nothing is, or nothing is known.
  std::string find_damage(const std::string& tar) const {
    const std::string notes = tar.substr(0, tar.rfind('.')) + ".json";
    if (!tar.ends_with(".tar") || !io::file_exists(notes)) return {};
    const Json json = parse_json(io::read_file(notes), "'" + notes + "'");
    const Json record = json.is_object() ? json.value("record", Json()) : Json();
    const std::string known = get_string(record, "xxh3").value_or("");
    if (known.empty()) return {};
    const std::string found = io::hash_file(tar);
    return found == known ? "" : fmt::format("its hash is {}, '{}' has {}", found, notes, known);
  }

  /// Throws Error unless the bytes are those that were packed.
  void check_bytes(const shard::Sample& sample, const Entry& entry) {
    const std::string what = name_of(entry);
    if (!entry.xxh3.empty()) {
      if (const std::string found = shard::hash_sample(sample); found != entry.xxh3)
        fail("{}: its bytes are not those that were packed (hash {}, the index has {})", what,
             found, entry.xxh3);
      return;
    }
    const std::lock_guard lock(damage_mutex);
    const auto [at, fresh] = damage.try_emplace(entry.shard);
    if (fresh) at->second = find_damage(io::join_path(folder, entry.shard));
    if (!at->second.empty())
      fail("{}: the shard is not as it was packed ({}), so none of its samples is used", what,
           at->second);
  }

  Reader reader_of(const Entry& entry) {
    const std::lock_guard lock(mutex);
    for (auto it = open.begin(); it != open.end(); ++it)
      if (it->first == entry.shard) {
        open.splice(open.begin(), open, it);
        return it->second;
      }
    auto reader = std::make_shared<const shard::IndexedReader>(io::join_path(folder, entry.shard));
    open.emplace_front(entry.shard, reader);
    if (open.size() > kOpenShards) open.pop_back();
    return reader;
  }

  Reader reader_with(const Entry& entry) {
    Reader reader = reader_of(entry);
    if (entry.row >= reader->samples())
      fail("{}: the shard has only {} samples", name_of(entry), reader->samples());
    return reader;
  }
};

LatentSet::LatentSet(const std::string& directory, const std::string& split)
    : state_(std::make_unique<State>()) {
  const std::string path = io::join_path(directory, "latents.json");
  if (!io::file_exists(path))
    fail_usage("'{}' is not a folder of latents: it has no latents.json (vfm-pack writes it last)",
               directory);
  state_->folder = io::join_path(directory, split);
  as_usage([&] {
    state_->info = parse_json(io::read_file(path), "'" + path + "'");
    if (!state_->info.is_object()) fail("'{}' is not a JSON object", path);
    state_->channels = need_integer(state_->info, "channels", "'" + path + "'");
    state_->vocabulary = get_integer(state_->info, "vocabulary").value_or(0);
    if (state_->vocabulary < 0 || state_->vocabulary > std::numeric_limits<std::int32_t>::max())
      fail("'vocabulary' of '{}' is {}", path, state_->vocabulary);
    if (const Json encoder = state_->info.value("text_encoder", Json()); encoder.is_object())
      state_->text_width = std::max<std::int64_t>(0, get_integer(encoder, "dim").value_or(0));
    const std::string index = io::join_path(state_->folder, "index.jsonl");
    if (!io::file_exists(index)) fail("'{}' has no split '{}'", directory, split);
    state_->entries = read_index(index);
  });
}

LatentSet::~LatentSet() = default;
LatentSet::LatentSet(LatentSet&&) noexcept = default;

const Json& LatentSet::info() const {
  return state_->info;
}
int LatentSet::vocabulary() const {
  return static_cast<int>(state_->vocabulary);
}
const std::vector<Entry>& LatentSet::entries() const {
  return state_->entries;
}

std::uint64_t LatentSet::offset(std::size_t i) const {
  const Entry& entry = state_->entries.at(i);
  return state_->reader_with(entry)->offset(entry.row);
}

LatentSample LatentSet::read(std::size_t i) const {
  const Entry& entry = state_->entries.at(i);
  const State::Reader reader = state_->reader_with(entry);
  return check(i, reader->read(entry.row), static_cast<std::int64_t>(reader->size(entry.row)));
}

std::int64_t LatentSet::about_bytes(std::size_t i) const {
  const Entry& entry = state_->entries.at(i);
  const auto member = [](std::int64_t bytes) {
    return kHeader + (bytes + kHeader - 1) / kHeader * kHeader;
  };
  const std::int64_t places = std::int64_t{entry.frames} * entry.height * entry.width;
  const std::int64_t code = state_->vocabulary > 65536 ? 4 : 2;
  const std::int64_t values =
      state_->vocabulary > 0 ? code * places : 2 * state_->channels * places;
  return member(kNpyHeader + values) +
         member(kNpyHeader + 2 * entry.text_tokens * state_->text_width) + member(1);
}

std::string LatentSet::read_piece(std::size_t i, std::int64_t begin, std::int64_t end) const {
  const Entry& entry = state_->entries.at(i);
  const State::Reader reader = state_->reader_with(entry);
  const auto size = static_cast<double>(reader->size(entry.row));
  const auto about = static_cast<double>(about_bytes(i));
  // Of neighbours one ends where the other begins, as both compute the same.
  const auto at = [&](std::int64_t place) {
    return static_cast<std::uint64_t>(std::floor(static_cast<double>(place) / about * size));
  };
  return reader->read_piece(entry.row, at(begin), at(end));
}

LatentSample LatentSet::put_together(std::size_t i, std::string_view bytes) const {
  const Entry& entry = state_->entries.at(i);
  return check(i, state_->reader_with(entry)->put_together(entry.row, bytes),
               static_cast<std::int64_t>(bytes.size()));
}

/// What is in the members, if it is what the index says.
LatentSample LatentSet::check(std::size_t i, const shard::Sample& sample,
                              std::int64_t bytes) const {
  const Entry& entry = state_->entries[i];
  const std::string what = state_->name_of(entry);
  if (sample.key != entry.key) fail("{}: the shard has '{}' there", what, sample.key);
  state_->check_bytes(sample, entry);
  LatentSample out;
  out.bytes = bytes;
  if (state_->vocabulary > 0)
    out.codes = read_codes(member(sample, "codes.npy", what), entry, state_->vocabulary, what);
  else
    out.latent = read_latent(member(sample, "latent.npy", what), entry, state_->channels, what);
  const std::string& text = member(sample, "text.npy", what);
  const auto text_shape = io::parse_npy(text, what).shape;
  if (text_shape.size() != 2 || text_shape[0] != entry.text_tokens)
    fail("{}: the text is not {} tokens", what, entry.text_tokens);
  out.text = io::npy_floats(text, what);
  out.meta = parse_json(member(sample, "json", what), what);
  return out;
}

}  // namespace vfm::data
