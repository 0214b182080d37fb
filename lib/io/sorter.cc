// SPDX-License-Identifier: Apache-2.0
#include "io/sorter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/stop.h"
#include "io/packed.h"

namespace vfm::io {
namespace {

constexpr std::size_t kLeastBuffer = std::size_t{16} << 10;  // To read a run.
constexpr std::size_t kMostBuffer = std::size_t{1} << 20;

/// Returns the first bytes as a number in the order of memcmp, which decides most comparisons.
std::uint64_t first_bytes(std::string_view record) {
  std::uint64_t value = 0;
  std::memcpy(&value, record.data(), std::min(record.size(), sizeof value));
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

struct HeldRecord {
  std::uint64_t first;
  std::uint32_t at, size;
};

struct SortedRun {
  std::uint64_t begin, end;
};

struct RunCursor {
  ScratchReader reader;
  std::string_view record;
  std::uint64_t first = 0;

  bool advance() {
    if (!reader.text(record)) return false;
    first = first_bytes(record);
    return true;
  }
};

}  // namespace

struct Sorter::State {
  State(std::string in, std::size_t bytes)
      : folder(std::move(in)), given(bytes), memory(whole(bytes)), runs_file(folder) {}

  static std::size_t whole(std::size_t bytes) {
    return bytes / sizeof(HeldRecord) * sizeof(HeldRecord);
  }
  std::size_t most_runs() const { return given / kLeastBuffer; }

  HeldRecord* entries() { return reinterpret_cast<HeldRecord*>(arena.get() + memory) - count; }
  void sort() {
    if (count == 0) return;
    const char* text = arena.get();
    std::sort(entries(), entries() + count, [text](const HeldRecord& a, const HeldRecord& b) {
      if (a.first != b.first) return a.first < b.first;
      return std::string_view(text + a.at, a.size) < std::string_view(text + b.at, b.size);
    });
  }
  void spill() {
    if (count == 0) return;
    check_stop();
    sort();
    const std::uint64_t begin = runs_file.size();
    for (const HeldRecord* entry = entries(); entry != entries() + count; ++entry)
      runs_file.append_text({arena.get() + entry->at, entry->size});
    runs.push_back({begin, runs_file.size()});
    used = count = 0;
    if (runs.size() == most_runs()) merge_runs();
    lengthen_runs();
  }
  /// The first quarter of the runs have the given size. Each later run is longer by the same step,
  /// up to seven times the size. Otherwise runs would be merged in between, which takes twice the
  /// disk space.
  void lengthen_runs() {
    const std::size_t even = most_runs() / 4, step = std::max<std::size_t>(1, most_runs() / 8);
    const std::size_t more = runs.size() > even ? runs.size() - even : 0;
    const std::size_t wanted = whole(given + given / step * more);
    if (wanted == memory) return;
    arena.reset();
    memory = wanted;
  }
  /// Merges all runs into one, once memory has no buffers for more.
  void merge_runs();
  void finish() {
    if (finished) return;
    if (!runs.empty()) return park();
    finished = true;
    sort();
  }
  void park() {
    finished = true;
    spill();
    arena.reset();
  }

  std::string folder;
  const std::size_t given;        // Bytes of memory for the first runs.
  std::size_t memory;             // Bytes of memory for the next run.
  std::unique_ptr<char[]> arena;  // Texts from the front, entries from the back.
  std::size_t used = 0, count = 0;
  std::uint64_t records = 0;
  bool finished = false;
  ScratchFile runs_file;
  std::vector<SortedRun> runs;
};

struct Sorter::Stream::Merge {
  auto after() const {
    return [this](std::uint32_t a, std::uint32_t b) {
      const RunCursor &x = cursors[a], &y = cursors[b];
      return x.first != y.first ? x.first > y.first : x.record > y.record;
    };
  }
  explicit Merge(State& of) : state(of) {
    const std::size_t buffer = std::clamp(state.given / std::max<std::size_t>(1, state.runs.size()),
                                          kLeastBuffer, kMostBuffer);
    for (const SortedRun& run : state.runs) {
      cursors.push_back({ScratchReader(state.runs_file, run.begin, run.end, buffer), {}, 0});
      if (!cursors.back().advance()) cursors.pop_back();
    }
    for (std::uint32_t i = 0; i < cursors.size(); ++i)
      heap.push_back(i);
    std::make_heap(heap.begin(), heap.end(), after());
  }

  /// Moves the first cursor, which has a new record, to its place in the heap.
  void sink() {
    const auto later = after();
    const std::uint32_t moving = heap.front();
    std::size_t at = 0;
    for (std::size_t child = 1; child < heap.size(); child = 2 * at + 1) {
      if (child + 1 < heap.size() && later(heap[child], heap[child + 1])) ++child;
      if (!later(moving, heap[child])) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = moving;
  }
  bool next(std::string_view& record) {
    constexpr std::uint64_t kStopCheck = 1 << 16;
    if (++given % kStopCheck == 0) check_stop();
    if (cursors.empty()) {
      if (given > state.count) return false;
      const HeldRecord& entry = state.entries()[given - 1];
      record = {state.arena.get() + entry.at, entry.size};
      return true;
    }
    if (given > 1 && !heap.empty()) {
      if (!cursors[heap.front()].advance()) {
        heap.front() = heap.back();
        heap.pop_back();
      }
      if (!heap.empty()) sink();
    }
    if (heap.empty()) return false;
    record = cursors[heap.front()].record;
    return true;
  }

  State& state;
  std::vector<RunCursor> cursors;
  std::vector<std::uint32_t> heap;
  std::uint64_t given = 0;
};

void Sorter::State::merge_runs() {
  arena.reset();
  ScratchFile merged(folder);
  {
    Stream::Merge merge(*this);
    for (std::string_view record; merge.next(record);)
      merged.append_text(record);
  }
  runs_file = std::move(merged);
  runs = {{0, runs_file.size()}};
}

Sorter::Sorter(std::string folder, std::size_t memory)
    : state_(std::make_unique<State>(std::move(folder), memory)) {}
Sorter::~Sorter() = default;
Sorter::Sorter(Sorter&&) noexcept = default;
Sorter& Sorter::operator=(Sorter&&) noexcept = default;

void Sorter::add(std::string_view record) {
  State& s = *state_;
  if (s.finished) fail("records come after the sorted ones were asked for");
  const std::size_t more = record.size() + sizeof(HeldRecord);
  if (more > s.given / 4) fail("a record of {} bytes is too long to be sorted", record.size());
  if (s.used + s.count * sizeof(HeldRecord) + more > s.memory) s.spill();
  if (!s.arena) s.arena = std::make_unique_for_overwrite<char[]>(s.memory);
  std::memcpy(s.arena.get() + s.used, record.data(), record.size());
  ++s.count;
  *s.entries() = {first_bytes(record), static_cast<std::uint32_t>(s.used),
                  static_cast<std::uint32_t>(record.size())};
  s.used += record.size();
  ++s.records;
}

std::uint64_t Sorter::records() const {
  return state_->records;
}

void Sorter::park() {
  state_->park();
}

Sorter::Stream Sorter::sorted() {
  state_->finish();
  return Stream(std::make_unique<Stream::Merge>(*state_));
}

Sorter::Stream::Stream(std::unique_ptr<Merge> merge) : merge_(std::move(merge)) {}
Sorter::Stream::~Stream() = default;
Sorter::Stream::Stream(Stream&&) noexcept = default;

bool Sorter::Stream::next(std::string_view& record) {
  return merge_->next(record);
}

}  // namespace vfm::io
