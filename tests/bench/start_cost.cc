// Counts what a start of training, a first checkpoint and a resumed start take, with ranks that are
// threads: start_cost FOLDER LAYOUT RANKS... prints a Markdown table (tests/bench/start_cost.sh).
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "dist/mesh.h"
#include "dist/threads.h"
#include "io/file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/data/blend.h"
#include "train/data/shared_files.h"
#include "train/step/trainer.h"
#include "unit/train/latents_fixture.h"

namespace {

std::string g_folder;  // of which files are counted
std::atomic<std::int64_t> g_opens = 0, g_live = 0;

int count_and_open(const char* path, int flags, mode_t mode) {
  if (!g_folder.empty() && std::string_view(path).starts_with(g_folder)) ++g_opens;
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

void* take(std::size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  g_live += static_cast<std::int64_t>(::malloc_usable_size(memory));
  return memory;
}

void give(void* memory) noexcept {
  g_live -= static_cast<std::int64_t>(::malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

// In place of the C library's, and of the standard library's.
extern "C" int open(const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return count_and_open(path, flags, mode);
}
void* operator new(std::size_t bytes) {
  return take(bytes);
}
void operator delete(void* memory) noexcept {
  give(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give(memory);
}

namespace {

using namespace vfm;
using namespace vfm::train;

/// Of all ranks, or of the rank with the most.
struct Counts {
  std::int64_t calls = 0, bytes = 0;               // of a rank, the most
  std::int64_t opened = 0, read = 0, written = 0;  // of all ranks together
  std::int64_t live = 0;                           // bytes of the heap that a rank holds more
};

std::int64_t so_far(const char* what) {
  const std::string text = io::read_stream("/proc/self/io");
  return std::stoll(text.substr(text.find(what) + std::string_view(what).size()));
}

/// Counts of phases, in the order of their names.
class Counter {
 public:
  /// Calls `act` on all ranks, between barriers.
  template <class Act>
  void phase(dist::World& world, const std::string& name, const Act& act) {
    world.barrier();
    if (world.rank() == 0) begin_ = now();
    world.barrier();
    world.traffic().reset();
    act();
    std::int64_t calls = 0, bytes = 0;
    for (const std::string& axis : world.traffic().axes()) {
      calls += world.traffic().of(axis).calls;
      bytes += world.traffic().of(axis).bytes;
    }
    {
      const std::lock_guard lock(mutex_);
      Counts& counts = phases_[name];
      counts.calls = std::max(counts.calls, calls);
      counts.bytes = std::max(counts.bytes, bytes);
    }
    world.barrier();
    if (world.rank() != 0) return;
    const Counts end = now();
    Counts& counts = phases_[name];
    counts.opened = end.opened - begin_.opened;
    counts.read = end.read - begin_.read;
    counts.written = end.written - begin_.written;
    counts.live = (end.live - begin_.live) / world.size();
  }
  const std::map<std::string, Counts>& phases() const { return phases_; }

 private:
  static Counts now() {
    return {
        .opened = g_opens, .read = so_far("rchar:"), .written = so_far("wchar:"), .live = g_live};
  }
  std::mutex mutex_;
  Counts begin_;
  std::map<std::string, Counts> phases_;
};

Recipe recipe_of(const std::string& layout) {
  const std::string text =
      "model: {num_attention_heads: 4, attention_head_dim: 12, num_layers: 2, max_size: [4, 8, "
      "8]}\n"
      "data: {tokens: 16, packs: 256, window: 8}\n"
      "parallel: {" +
      layout + "}\n";
  return make_recipe(parse_yaml(text, "recipe"));
}

std::map<std::string, Counts> count(const std::string& layout, int ranks) {
  Counter counter;
  const std::string run = g_folder + "/run-" + std::to_string(ranks);
  std::filesystem::remove_all(run);
  RunOptions options;
  options.data = g_folder + "/data";
  options.recipe = recipe_of(layout);
  dist::thread_worlds(ranks, [&](dist::World& world) {
    std::unique_ptr<Dataset> data;
    Recipe recipe = options.recipe;
    counter.phase(world, "1 data", [&] {
      const data::GivenTexts given(share_small_files(world, options));
      data = open_data(options, "train");
      data->fit(recipe);
    });
    counter.phase(world, "2 mesh", [&] { Parallel(recipe, world); });
    std::optional<Parallel> parallel;
    counter.phase(world, "3 mesh held", [&] { parallel.emplace(recipe, world); });
    std::optional<Trainer> trainer;
    counter.phase(world, "4 trainer", [&] { trainer.emplace(recipe, *data, world); });
    counter.phase(world, "5 checkpoint", [&] {
      write_checkpoint(trainer->parallel().mesh(), run,
                       {1, trainer->objective().config(), Json::object(), trainer->optimizer()},
                       {.file_bytes = 50000});
    });
    counter.phase(world, "6 verify", [&] { newest_good_checkpoint(world, run); });
    counter.phase(world, "7 resume",
                  [&] { read_checkpoint(world, checkpoint_path(run, 1), trainer->optimizer()); });
  });
  return counter.phases();
}

/// "constant", or "N^0.8" by the last two numbers.
std::string growth(const std::vector<int>& ranks, const std::vector<double>& values) {
  const std::size_t n = values.size();
  if (n < 2 || values[n - 2] <= 0 || values[n - 1] <= 0) return "";
  const double power = std::log(values[n - 1] / values[n - 2]) /
                       std::log(static_cast<double>(ranks[n - 1]) / ranks[n - 2]);
  return std::abs(power) < 0.03 ? "constant" : fmt::format("N^{:.2f}", power);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) fail("give FOLDER LAYOUT RANKS...");
  g_folder = argv[1];
  const std::string layout = argv[2];
  std::vector<int> ranks;
  for (int i = 3; i < argc; ++i)
    ranks.push_back(std::atoi(argv[i]));
  write_latents(g_folder + "/data", {.samples = 400});
  std::vector<std::map<std::string, Counts>> all;
  for (const int one : ranks)
    all.push_back(count(layout, one));
  std::string head = "| " + layout + " |", line = "|---|";
  for (const int one : ranks) {
    head += fmt::format(" {} ranks |", one);
    line += "---:|";
  }
  std::printf("%s growth |\n%s---:|\n", head.c_str(), line.c_str());
  const std::pair<const char*, std::int64_t Counts::*> kinds[] = {
      {"calls of a rank", &Counts::calls},        {"bytes sent by a rank", &Counts::bytes},
      {"files opened by all", &Counts::opened},   {"bytes read by all", &Counts::read},
      {"bytes written by all", &Counts::written}, {"heap of a rank", &Counts::live}};
  for (const auto& [phase, counts] : all.front())
    for (const auto& [name, member] : kinds) {
      std::string row = fmt::format("| {}: {} |", phase.substr(2), name);
      std::vector<double> values;
      for (const auto& one : all) {
        values.push_back(static_cast<double>(one.at(phase).*member));
        row += fmt::format(" {} |", one.at(phase).*member);
      }
      if (values.back() != 0) std::printf("%s %s |\n", row.c_str(), growth(ranks, values).c_str());
    }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "start_cost: %s\n", error.what());
  return 1;
}
