// SPDX-License-Identifier: Apache-2.0
#include "io/name_set.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <compare>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/hash.h"
#include "base/stop.h"
#include "io/file.h"

namespace vfm::io {
namespace {

struct NameHash {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const NameHash&) const = default;
};

constexpr std::size_t kBlockOfNames = 512;  // that are read together
constexpr std::size_t kRunsOfLevel = 8;     // that become one
constexpr std::size_t kFilterWords = std::size_t{1} << 23;

NameHash hash_of_name(std::string_view name) {
  const std::string hex = hash_hex(name);
  NameHash hash;
  std::from_chars(hex.data(), hex.data() + 16, hash.high, 16);
  std::from_chars(hex.data() + 16, hex.data() + 32, hash.low, 16);
  if (hash == NameHash{}) hash.low = 1;  // zeros are an empty place of the table
  return hash;
}

/// The latest names: open addressing, at most half full.
class LatestNames {
 public:
  bool contains(const NameHash& name) const {
    return !slots_.empty() && slots_[place_of(name)] == name;
  }
  /// False: it was there.
  bool insert(const NameHash& name) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    NameHash& slot = slots_[place_of(name)];
    if (slot == name) return false;
    slot = name;
    ++count_;
    return true;
  }
  std::size_t count() const { return count_; }
  /// All of them, in order; then there are none.
  std::vector<NameHash> take_sorted() {
    std::vector<NameHash> names;
    names.reserve(count_);
    for (NameHash& slot : slots_)
      if (slot != NameHash{}) names.push_back(std::exchange(slot, {}));
    std::ranges::sort(names);
    count_ = 0;
    return names;
  }

 private:
  /// Of the name, or where it would be.
  std::size_t place_of(const NameHash& name) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = name.low & mask;
    while (slots_[at] != NameHash{} && slots_[at] != name)
      at = (at + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<NameHash> old(std::max<std::size_t>(64, 2 * slots_.size()));
    std::swap(slots_, old);
    for (const NameHash& name : old)
      if (name != NameHash{}) slots_[place_of(name)] = name;
  }

  std::vector<NameHash> slots_;
  std::size_t count_ = 0;
};

/// A file that has no name, and so is gone with the program, however that ends. Some file systems
/// have none: there it has one until it is open.
File open_unnamed(const std::string& folder) {
  const std::string what = join_path(folder, "(temporary)");
  const int unnamed = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (unnamed >= 0) return {unnamed, what};
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
    fail_output(errno, "cannot make a temporary file in '{}'", folder);
  std::string path = join_path(folder, ".names-XXXXXX");
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) fail_output(errno, "cannot make a temporary file in '{}'", folder);
  File file(fd, what);
  if (::unlink(path.c_str()) != 0) fail_output(errno, "cannot remove '{}'", path);
  return file;
}

/// Sorted names on disk, and the first of each block in memory.
class NameRun {
 public:
  explicit NameRun(const std::string& folder) : file_(open_unnamed(folder)) {}

  /// In order.
  void add(const NameHash& name) {
    if (count_++ % kBlockOfNames == 0) firsts_.push_back(name);
    pending_.push_back(name);
    if (pending_.size() >= 16 * kBlockOfNames) flush();
  }
  void finish() {
    flush();
    pending_.shrink_to_fit();
  }
  std::uint64_t count() const { return count_; }
  bool contains(const NameHash& name) const {
    const auto next = std::ranges::upper_bound(firsts_, name);
    if (next == firsts_.begin()) return false;
    const auto block = static_cast<std::uint64_t>(next - firsts_.begin() - 1);
    std::vector<NameHash> names;
    read(block * kBlockOfNames, names);
    return std::ranges::binary_search(names, name);
  }
  /// A block's length of names from number `first` on, or the rest.
  void read(std::uint64_t first, std::vector<NameHash>& names) const {
    names.resize(std::min<std::uint64_t>(kBlockOfNames, count_ - first));
    file_.pread_exact(names.data(), names.size() * sizeof(NameHash), first * sizeof(NameHash));
  }

 private:
  void flush() {
    file_.write_all(pending_.data(), pending_.size() * sizeof(NameHash));
    pending_.clear();
  }

  File file_;
  std::uint64_t count_ = 0;
  std::vector<NameHash> firsts_, pending_;
};

/// Goes through a run.
class NameCursor {
 public:
  explicit NameCursor(const NameRun& run) : run_(run) { fill(); }
  const NameHash* get() const { return at_ < names_.size() ? &names_[at_] : nullptr; }
  void advance() {
    if (++at_ == names_.size()) fill();
  }

 private:
  void fill() {
    at_ = 0;
    names_.clear();
    if (next_ < run_.count()) run_.read(next_, names_);
    next_ += names_.size();
  }

  const NameRun& run_;
  std::vector<NameHash> names_;
  std::size_t at_ = 0;
  std::uint64_t next_ = 0;
};

/// Each name once.
NameRun merged_runs(const std::vector<NameRun>& runs, const std::string& folder) {
  std::vector<NameCursor> cursors(runs.begin(), runs.end());
  NameRun out(folder);
  for (std::uint64_t added = 0;; ++added) {
    if (added % 65536 == 0) check_stop();
    const NameHash* least = nullptr;
    for (const NameCursor& cursor : cursors)
      if (const NameHash* name = cursor.get(); name && (!least || *name < *least)) least = name;
    if (!least) break;
    const NameHash name = *least;
    out.add(name);
    for (NameCursor& cursor : cursors)
      while (cursor.get() && *cursor.get() == name)
        cursor.advance();
  }
  out.finish();
  return out;
}

/// Four bits of one word.
std::uint64_t filter_bits(const NameHash& name) {
  std::uint64_t bits = 0;
  for (const int shift : {0, 6, 12, 18})
    bits |= std::uint64_t{1} << (name.high >> shift & 63);
  return bits;
}
std::size_t filter_word(const NameHash& name) {
  return name.high >> 24 & (kFilterWords - 1);
}

}  // namespace

struct NameSet::State {
  std::string folder;
  std::size_t in_memory;
  LatestNames table;
  std::vector<std::vector<NameRun>> levels;  // each of runs eight times as long as those before
  std::vector<std::uint64_t> filter;         // of all names on disk; empty: there are none

  bool on_disk(const NameHash& name) const {
    if (filter.empty()) return false;
    const std::uint64_t bits = filter_bits(name);
    if ((filter[filter_word(name)] & bits) != bits) return false;
    for (const std::vector<NameRun>& level : levels)
      for (const NameRun& run : level)
        if (run.contains(name)) return true;
    return false;
  }

  void add(const NameHash& name) {
    table.insert(name);
    if (table.count() >= in_memory) spill();
  }

  void spill() {
    filter.resize(kFilterWords);
    NameRun run(folder);
    for (const NameHash& name : table.take_sorted()) {
      filter[filter_word(name)] |= filter_bits(name);
      run.add(name);
    }
    run.finish();
    for (std::size_t level = 0;; ++level) {
      if (level == levels.size()) levels.emplace_back();
      std::vector<NameRun>& runs = levels[level];
      runs.push_back(std::move(run));
      if (runs.size() < kRunsOfLevel) return;
      run = merged_runs(runs, folder);
      runs.clear();
    }
  }
};

NameSet::NameSet(std::string folder, std::size_t in_memory) : state_(std::make_unique<State>()) {
  state_->folder = std::move(folder);
  state_->in_memory = std::max<std::size_t>(1, in_memory);
}
NameSet::~NameSet() = default;
NameSet::NameSet(NameSet&&) noexcept = default;

bool NameSet::insert(std::string_view name) {
  const NameHash hash = hash_of_name(name);
  if (state_->table.contains(hash) || state_->on_disk(hash)) return false;
  state_->add(hash);
  return true;
}

void NameSet::add(std::string_view name) {
  state_->add(hash_of_name(name));
}

bool NameSet::contains(std::string_view name) const {
  const NameHash hash = hash_of_name(name);
  return state_->table.contains(hash) || state_->on_disk(hash);
}

}  // namespace vfm::io
