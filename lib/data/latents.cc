// SPDX-License-Identifier: Apache-2.0
#include "data/latents.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "data/given_texts.h"
#include "data/index_file.h"
#include "data/open_shard.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/remote/address.h"
#include "shard/reader.h"
#include "shard/stored_offsets.h"

namespace vfm::data {
namespace {

/// More tars than this are not held open at once by all sets together, but four of each. An open
/// object takes no descriptor.
constexpr std::size_t kOpenShards = 64, kOpenObjects = 4096;
/// Bytes before a member of a tar, and before the values of an array.
constexpr std::int64_t kHeader = 512, kNpyHeader = 128;

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

struct LatentSet::State {
  using Reader = std::shared_ptr<const OpenShard>;

  std::string folder;
  Json info;
  std::int64_t channels = 0, vocabulary = 0, text_width = 0;
  std::unique_ptr<SampleIndex> index;

  State() { ++sets(); }
  ~State() { --sets(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  /// That there are. The folders of a blend are many, and files are counted by process.
  static std::atomic<std::size_t>& sets() {
    static std::atomic<std::size_t> count = 0;
    return count;
  }

  std::mutex mutex;                                  // guards open
  std::list<std::pair<std::uint32_t, Reader>> open;  // by shard, the last used first
  std::mutex damage_mutex;                           // guards damage
  std::map<std::uint32_t, std::string> damage;       // of shards that were compared; "": none

  std::string tar_of(std::uint32_t shard) const {
    return io::join_path(folder, index->shard_name(shard));
  }
  std::string name_of(std::size_t i, std::string_view key) const {
    return fmt::format("sample '{}' of '{}'", key, tar_of(index->place(i).shard));
  }
  std::string name_of(std::size_t i) const { return name_of(i, index->name(i)); }

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

  /// Throws Error unless the sample is the one that was packed, by the index.
  void check_sample(std::size_t i, const shard::Sample& sample) {
    const std::string hash = index->has_hash(i) ? shard::hash_sample(sample) : "";
    if (entry_check(sample.key, hash) != index->check(i)) {
      const Entry entry = index->entry(i);
      const std::string what = name_of(i, entry.key);
      if (sample.key != entry.key) fail("{}: the shard has '{}' there", what, sample.key);
      fail("{}: its bytes are not those that were packed (hash {}, the index has {})", what, hash,
           entry.xxh3);
    }
    if (!hash.empty()) return;
    const std::uint32_t shard = index->place(i).shard;
    const std::lock_guard lock(damage_mutex);
    const auto [at, fresh] = damage.try_emplace(shard);
    if (fresh) at->second = find_damage(tar_of(shard));
    if (!at->second.empty())
      fail("{}: the shard is not as it was packed ({}), so none of its samples is used",
           name_of(i, sample.key), at->second);
  }

  bool is_remote() const { return io::is_remote(folder); }

  Reader find_open(std::uint32_t shard) {
    for (auto it = open.begin(); it != open.end(); ++it)
      if (it->first == shard) {
        open.splice(open.begin(), open, it);
        return it->second;
      }
    return nullptr;
  }

  Reader reader_of(std::uint32_t shard) {
    std::unique_lock lock(mutex);
    if (Reader reader = find_open(shard)) return reader;
    // Objects are opened several at once, as each of them takes many round trips.
    if (is_remote()) lock.unlock();
    auto reader = std::make_shared<const OpenShard>(tar_of(shard));
    if (!lock.owns_lock()) lock.lock();
    if (Reader other = find_open(shard)) return other;
    open.emplace_front(shard, reader);
    const std::size_t most = (is_remote() ? kOpenObjects : kOpenShards) / sets();
    while (open.size() > std::max<std::size_t>(4, most))
      open.pop_back();
    return reader;
  }

  Reader reader_with(std::size_t i) {
    const SamplePlace at = index->place(i);
    Reader reader = reader_of(at.shard);
    if (at.row >= reader->reader.samples())
      fail("{}: the shard has only {} samples", name_of(i), reader->reader.samples());
    return reader;
  }
};

LatentSet::LatentSet(const std::string& directory, const std::string& split)
    : state_(std::make_unique<State>()) {
  const std::string path = io::join_path(directory, "latents.json");
  if (!exists_or_given(path))
    fail_usage("'{}' is not a folder of latents: it has no latents.json (vfm-pack writes it last)",
               directory);
  state_->folder = io::join_path(directory, split);
  as_usage([&] {
    state_->info = parse_json(read_or_given(path), "'" + path + "'");
    if (!state_->info.is_object()) fail("'{}' is not a JSON object", path);
    state_->channels = need_integer(state_->info, "channels", "'" + path + "'");
    state_->vocabulary = get_integer(state_->info, "vocabulary").value_or(0);
    if (state_->vocabulary < 0 || state_->vocabulary > std::numeric_limits<std::int32_t>::max())
      fail("'vocabulary' of '{}' is {}", path, state_->vocabulary);
    if (const Json encoder = state_->info.value("text_encoder", Json()); encoder.is_object())
      state_->text_width = std::max<std::int64_t>(0, get_integer(encoder, "dim").value_or(0));
    if (!exists_or_given(io::join_path(state_->folder, "index.jsonl")))
      fail("'{}' has no split '{}'", directory, split);
    state_->index = open_index(state_->folder, state_->info);
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
const SampleIndex& LatentSet::index() const {
  return *state_->index;
}

std::vector<std::uint64_t> LatentSet::offsets(std::span<const std::uint64_t> samples) const {
  struct Wanted {
    SamplePlace at;
    std::size_t number;  // in `samples`
  };
  std::vector<Wanted> wanted;
  for (std::size_t k = 0; k < samples.size(); ++k)
    wanted.push_back({index().place(samples[k]), k});
  std::ranges::sort(wanted, {},
                    [](const Wanted& one) { return std::pair(one.at.shard, one.at.row); });
  std::vector<std::uint64_t> offsets(samples.size());
  for (std::size_t begin = 0; begin < wanted.size();) {
    const std::uint32_t shard = wanted[begin].at.shard;
    const shard::StoredOffsets stored(state_->tar_of(shard));
    for (; begin < wanted.size() && wanted[begin].at.shard == shard; ++begin)
      offsets[wanted[begin].number] = stored.at(wanted[begin].at.row);
  }
  return offsets;
}

LatentSample LatentSet::read(std::size_t i) const {
  if (is_remote()) return put_together(i, read_piece(i, 0, about_bytes(i)));
  const std::int64_t row = index().place(i).row;
  const State::Reader open = state_->reader_with(i);
  return check(i, open->reader.read(row), static_cast<std::int64_t>(open->reader.size(row)));
}

bool LatentSet::is_remote() const {
  return state_->is_remote();
}

std::int64_t LatentSet::about_bytes(std::size_t i) const {
  const Form& form = index().forms()[index().form_of(i)];
  const auto member = [](std::int64_t bytes) {
    return kHeader + (bytes + kHeader - 1) / kHeader * kHeader;
  };
  const std::int64_t places = std::int64_t{form.frames} * form.height * form.width;
  const std::int64_t code = state_->vocabulary > 65536 ? 4 : 2;
  const std::int64_t values =
      state_->vocabulary > 0 ? code * places : 2 * state_->channels * places;
  return member(kNpyHeader + values) +
         member(kNpyHeader + 2 * index().text_tokens(i) * state_->text_width) + member(1);
}

std::string LatentSet::read_piece(std::size_t i, std::int64_t begin, std::int64_t end) const {
  SampleBytes part{i, begin, end, {}, {}};
  SampleBytes* const parts[] = {&part};
  fetch_of_shard(index().place(i).shard, parts);
  return std::move(part.bytes);
}

void LatentSet::fetch_of_shard(std::uint32_t shard, std::span<SampleBytes* const> parts) const {
  std::vector<io::RemoteFile::Range> ranges;
  State::Reader open;
  for (SampleBytes* const part : parts) {
    const std::int64_t row = index().place(part->sample).row;
    open = state_->reader_with(part->sample);
    const shard::IndexedReader& reader = open->reader;
    const auto size = static_cast<double>(reader.size(row));
    const auto about = static_cast<double>(about_bytes(part->sample));
    // Of neighbours one ends where the other begins, as both compute the same.
    const auto at = [&](std::int64_t place) {
      return static_cast<std::uint64_t>(std::floor(static_cast<double>(place) / about * size));
    };
    const std::uint64_t begin = at(part->begin), end = at(part->end);
    if (open->object == nullptr) {
      part->bytes = reader.read_piece(row, begin, end);
      continue;
    }
    if (begin > end || reader.offset(row) + end > open->object->size())
      fail("{}: '{}' ends before it", state_->name_of(part->sample), state_->tar_of(shard));
    part->bytes.resize(end - begin);
    ranges.push_back({reader.offset(row) + begin, std::as_writable_bytes(std::span(part->bytes))});
  }
  if (!ranges.empty()) open->object->pread_all(ranges);
}

void LatentSet::fetch(std::span<SampleBytes> parts) const {
  std::map<std::uint32_t, std::vector<SampleBytes*>> of_shards;
  for (SampleBytes& part : parts)
    of_shards[index().place(part.sample).shard].push_back(&part);
  for (const auto& [shard, own] : of_shards)
    fetch_or_fail(own, [&, number = shard](std::span<SampleBytes* const> some) {
      fetch_of_shard(number, some);
    });
}

LatentSample LatentSet::put_together(std::size_t i, std::string_view bytes) const {
  return check(i, state_->reader_with(i)->reader.put_together(index().place(i).row, bytes),
               static_cast<std::int64_t>(bytes.size()));
}

/// The sample, if it is what the index says.
LatentSample LatentSet::check(std::size_t i, shard::Sample sample, std::int64_t bytes) const {
  state_->check_sample(i, sample);
  LatentSample out;
  try {
    out = take(i, sample);
  } catch (const Error&) {
    static_cast<void>(index().entry(i));  // throws, if it is the index that is damaged
    throw;
  }
  out.bytes = bytes;
  out.key = std::move(sample.key);
  return out;
}

/// What is in the members.
LatentSample LatentSet::take(std::size_t i, const shard::Sample& sample) const {
  const Entry sizes = index().sizes(i);
  const std::string what = state_->name_of(i, sample.key);
  LatentSample out;
  if (state_->vocabulary > 0)
    out.codes = read_codes(member(sample, "codes.npy", what), sizes, state_->vocabulary, what);
  else
    out.latent = read_latent(member(sample, "latent.npy", what), sizes, state_->channels, what);
  const std::string& text = member(sample, "text.npy", what);
  const auto text_shape = io::parse_npy(text, what).shape;
  if (text_shape.size() != 2 || text_shape[0] != sizes.text_tokens)
    fail("{}: the text is not {} tokens", what, sizes.text_tokens);
  out.text = io::npy_floats(text, what);
  out.meta = parse_json(member(sample, "json", what), what);
  return out;
}

}  // namespace vfm::data
