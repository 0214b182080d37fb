// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "data/given_texts.h"
#include "data/index_file.h"
#include "io/file.h"
#include "io/remote/address.h"

namespace vfm::data {
namespace {

constexpr std::uint32_t kHashKnown = 1 << 23;
constexpr std::uint64_t kWorthHints = 64 << 20;  // of a smaller file all pages are soon in memory

class MappedIndex final : public SampleIndex {
 public:
  MappedIndex(const std::string& path, const std::string& list, const Json& info)
      : file_(path), header_(header_of(file_)), at_(header_) {
    check_tables();
    if (GivenTexts::find(path) == nullptr) check_fits(list, info);
    list_ = io::File::open_regular(list);
    // Samples are asked for in no order: what stands beside one is not needed soon.
    if (header_.bytes >= kWorthHints) advise(0, header_.bytes, MADV_RANDOM);
  }

  std::size_t size() const override { return header_.samples; }
  std::span<const Form> forms() const override {
    return {table<Form>(at_.form_table), header_.forms};
  }
  std::uint32_t form_of(std::size_t i) const override {
    check_number(i);
    const std::uint32_t form = table<std::uint32_t>(at_.forms)[i];
    if (form >= header_.forms) fail_damaged("a sample has no sizes");
    return form;
  }
  int text_tokens(std::size_t i) const override {
    return static_cast<int>(text(i) & (kHashKnown - 1));
  }
  bool has_hash(std::size_t i) const override { return (text(i) & kHashKnown) != 0; }
  std::uint64_t check(std::size_t i) const override {
    check_number(i);
    return table<std::uint64_t>(at_.checks)[i];
  }
  SamplePlace place(std::size_t i) const override {
    check_number(i);
    const std::span<const IndexRun> all = runs();
    const auto next = std::ranges::upper_bound(all, i, {}, &IndexRun::first);
    const IndexRun& run = *(next - 1);
    return {run.shard, static_cast<std::int64_t>(run.row + (i - run.first))};
  }
  std::string_view shard_name(std::uint32_t shard) const override {
    const auto* const ends = table<std::uint64_t>(at_.name_ends);
    const std::uint64_t begin = shard == 0 ? 0 : ends[shard - 1];
    return {table<char>(at_.names) + begin, ends[shard] - begin};
  }
  std::uint32_t shards() const override { return static_cast<std::uint32_t>(header_.shards); }
  Entry entry(std::size_t i) const override;
  std::vector<std::string> keys() const override {
    std::vector<std::string> keys;
    for (const Entry& entry : read_list(list_.path()))
      keys.push_back(entry.key);
    return keys;
  }
  std::string fingerprint(const Json& /*info*/) const override {
    return {header_.fingerprint.begin(), header_.fingerprint.end()};
  }
  void expect(std::span<const std::uint64_t> samples) const override;

 private:
  static LatentIndexHeader header_of(const io::MappedFile& file) {
    LatentIndexHeader header;
    if (file.bytes().size() < LatentIndexLayout::kBegin) fail("'{}' is cut short", file.path());
    std::memcpy(&header, file.bytes().data(), sizeof header);
    if (header.magic != LatentIndexHeader::kMagic) fail("'{}' is no index", file.path());
    if (header.version != LatentIndexHeader::kVersion)
      fail("'{}' is of version {}, this program knows {}", file.path(), header.version,
           LatentIndexHeader::kVersion);
    if (header.bytes != file.bytes().size())
      fail("'{}' has {} bytes, not {}", file.path(), file.bytes().size(), header.bytes);
    return header;
  }

  [[noreturn]] void fail_damaged(std::string_view why) const {
    fail("'{}' is damaged ({}): remove it, and it is made again", file_.path(), why);
  }
  void check_number(std::size_t i) const {
    if (i >= header_.samples) fail("there is no sample {} of {}", i, header_.samples);
  }

  /// So that no number in them leads out of the file.
  void check_tables() const {
    const std::uint64_t most = header_.bytes;
    for (const std::uint64_t count :
         {header_.samples, header_.forms, header_.runs, header_.shards, header_.name_bytes})
      if (count > most) fail_damaged("its header");
    if (at_.end != header_.bytes) fail_damaged("its header");
    if (check_of_tables(header_, file_.bytes().subspan(at_.form_table)) != header_.tables_check)
      fail_damaged("its tables");
    if (header_.samples > 0 && (runs().empty() || runs()[0].first != 0))
      fail_damaged("its first shard");
    for (const IndexRun& run : runs())
      if (run.shard >= header_.shards) fail_damaged("its shards");
    std::uint64_t begin = 0;
    for (std::uint32_t shard = 0; shard < header_.shards; ++shard) {
      const std::uint64_t end = table<std::uint64_t>(at_.name_ends)[shard];
      if (end <= begin || end > header_.name_bytes) fail_damaged("its names");
      begin = end;
      // As parse_entry(): no way out of the folder.
      const std::string_view name = shard_name(shard);
      if (name[0] == '.' || name.find('/') != std::string_view::npos) fail_damaged("its names");
    }
  }

  void check_fits(const std::string& list, const Json& info) const {
    const std::string hash = hash_hex(dump_json(info));
    if (io::File::open_regular(list).size() != header_.list_bytes ||
        hash_of_list(list) != header_.list_hash)
      fail("'{}' was made from another '{}'", file_.path(), list);
    if (!std::ranges::equal(hash, header_.info_hash))
      fail("'{}' was made with another latents.json", file_.path());
  }

  template <class Type>
  const Type* table(std::uint64_t at) const {
    return reinterpret_cast<const Type*>(file_.bytes().data() + at);
  }
  std::span<const IndexRun> runs() const { return {table<IndexRun>(at_.runs), header_.runs}; }
  std::uint32_t text(std::size_t i) const {
    check_number(i);
    std::uint32_t value = 0;
    std::memcpy(&value, file_.bytes().data() + at_.texts + 3 * i, 3);
    return value;
  }
  void advise(std::uint64_t begin, std::uint64_t bytes, int advice) const {
    // Only a hint.
    ::madvise(const_cast<std::byte*>(file_.bytes().data()) + begin, bytes, advice);
  }

  io::MappedFile file_;
  LatentIndexHeader header_;
  LatentIndexLayout at_;
  io::File list_;
};

Entry MappedIndex::entry(std::size_t i) const {
  check_number(i);
  const std::size_t group = i / LatentIndexLayout::kLines;
  const auto* const lines = table<std::uint64_t>(at_.lines);
  const std::uint64_t begin = lines[group];
  const bool last = (group + 1) * LatentIndexLayout::kLines >= header_.samples;
  const std::uint64_t end = last ? header_.list_bytes : lines[group + 1];
  constexpr std::uint64_t kMostBytes = 64 << 20;  // of 64 lines
  if (begin > end || end > header_.list_bytes || end - begin > kMostBytes)
    fail_damaged("where lines begin");
  std::string text(end - begin, '\0');
  list_.pread_exact(text.data(), text.size(), begin);
  std::string_view rest = text;
  for (std::size_t k = 0; k < i % LatentIndexLayout::kLines && !rest.empty(); ++k) {
    const std::size_t line = rest.find('\n');
    rest.remove_prefix(line < rest.size() ? line + 1 : rest.size());
  }
  const std::string what = fmt::format("line {} of '{}'", i + 1, list_.path());
  Entry entry = parse_entry(parse_json(rest.substr(0, rest.find('\n')), what), what);
  const Entry here = sizes(i);
  if (entry_check(entry.key, entry.xxh3) != check(i) || entry.xxh3.empty() == has_hash(i) ||
      std::tie(entry.shard, entry.row, entry.frames, entry.height, entry.width, entry.fps,
               entry.text_tokens) != std::tie(here.shard, here.row, here.frames, here.height,
                                              here.width, here.fps, here.text_tokens))
    fail_damaged(fmt::format("{} says something else", what));
  return entry;
}

/// Pages that are not in memory are asked for before any is waited for.
void MappedIndex::expect(std::span<const std::uint64_t> samples) const {
  if (header_.bytes < kWorthHints) return;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<std::uint64_t> pages;
  for (const std::uint64_t i : samples)
    pages.push_back((at_.forms + 4 * i) / page);
  std::ranges::sort(pages);
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  for (std::size_t begin = 0, end = 1; begin < pages.size(); begin = end++) {
    while (end < pages.size() && pages[end] == pages[end - 1] + 1)
      ++end;
    advise(pages[begin] * page, (end - begin) * page, MADV_WILLNEED);
  }
}

/// Why a file does not do; "": `index` is it.
std::string try_to_map(const std::string& path, const std::string& list, const Json& info,
                       std::unique_ptr<SampleIndex>& index) {
  try {
    index = map_index(path, list, info);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

std::unique_ptr<SampleIndex> map_index(const std::string& path, const std::string& list,
                                       const Json& info) {
  return std::make_unique<MappedIndex>(path, list, info);
}

bool index_fits(const std::string& path, const std::string& list, const Json& info) {
  std::unique_ptr<SampleIndex> index;
  return io::file_exists(path) && try_to_map(path, list, info, index).empty();
}

std::unique_ptr<SampleIndex> open_index(const std::string& folder, const Json& info) {
  const std::string list = io::join_path(folder, "index.jsonl");
  const std::string path = io::join_path(folder, "index.bin");
  std::unique_ptr<SampleIndex> index;
  std::string why;
  if (GivenTexts::find(list) != nullptr) return list_index(read_list(list));
  if (exists_or_given(path)) why = try_to_map(path, list, info, index);
  if (index) return index;
  const std::uint64_t bytes = io::File::open_regular(list).size();
  if (bytes <= kListInMemory) {
    if (!why.empty()) log_info("{}; '{}' is read instead", why, list);
    return list_index(read_list(list));
  }
  if (!io::is_bucket(folder) && ::access(folder.c_str(), W_OK) != 0) {
    if (bytes <= kMostListInMemory) return list_index(read_list(list));
    fail(
        "'{}' has no index.bin that fits, and it cannot be written there; '{}' has {} bytes and "
        "needs one: run vfm-pack or vfm-train cost as a user who may write there",
        folder, list, bytes);
  }
  io::AtomicFile file = io::AtomicFile::await(path);
  if (io::file_exists(path)) why = try_to_map(path, list, info, index);
  if (index) return index;
  if (!why.empty()) log_warning("{}", why);
  log_info("making '{}' from '{}': once, and the next run finds it", path, list);
  make_index(list, file, info);
  file.commit();
  return map_index(path, list, info);
}

}  // namespace vfm::data
