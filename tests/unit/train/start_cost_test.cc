// What a start takes from the file system, and from each rank, does not grow with the ranks, or as
// the formulas of examples/scale.md say. Ranks are threads here; tests/bench/start_cost.sh has
// more.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <span>
#include <vector>

#include "base/float8.h"
#include "data/index_file.h"
#include "data/latents.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "latents_fixture.h"
#include "models/folder/load_tensors.h"
#include "saved_state.h"
#include "support/temporary_folder.h"
#include "train/checkpoint/checkpoint_pieces.h"
#include "train/checkpoint/checkpoint_reading.h"
#include "train/data/shared_files.h"
#include "train/diffusion/data.h"

using namespace vfm;
using namespace vfm::train;
using dist::Axes;

namespace {

constexpr std::array<int, 2> kWorlds = {8, 64};

/// Bytes that this process has read from files so far. Maps are not counted.
std::int64_t bytes_read() {
  const std::string text = io::read_stream("/proc/self/io");
  return std::stoll(text.substr(text.find("rchar:") + 6));
}

/// The most bytes that a rank sent, by what `work` does.
struct MostSent {
  std::mutex mutex;
  std::int64_t most = 0;
  void add(std::int64_t bytes) {
    const std::lock_guard lock(mutex);
    most = std::max(most, bytes);
  }
};

std::int64_t sent_to_world(dist::World& world) {
  return world.traffic().of("world").bytes;
}

/// All weights of a rank.
std::vector<float> all_weights_of(const SavedState& state) {
  std::vector<float> all;
  for (const nn::Parameter* parameter : state.list) {
    const Tensor values = parameter->read();
    all.insert(all.end(), values.floats().begin(), values.floats().end());
  }
  return all;
}

/// Tensors in memory, of which one has codes; counts the bytes that are read of the others.
class ModelInMemory final : public io::TensorSet {
 public:
  explicit ModelInMemory(const std::vector<float>& values)
      : TensorSet("model"), codes_(values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i)
      codes_[i] = float_to_f8e4m3(values[i]);
    for (int i = 0; i < kTensors; ++i)
      add({fmt::format("f{:03}", i),
           "F32",
           {static_cast<std::int64_t>(values.size())},
           std::as_bytes(std::span(values))});
    add({"codes",
         "F8_E4M3",
         {static_cast<std::int64_t>(values.size())},
         std::as_bytes(std::span(codes_))});
  }
  static constexpr int kTensors = 70;
  mutable std::atomic<std::int64_t> read = 0;

 private:
  void read_bytes(const io::TensorView& tensor, std::uint64_t begin,
                  std::span<std::byte> out) const override {
    read += static_cast<std::int64_t>(out.size());
    TensorSet::read_bytes(tensor, begin, out);
  }
  std::vector<std::uint8_t> codes_;
};

dist::Layout cut_in(int tp) {
  dist::Layout layout;
  layout.tp = tp;
  return layout;
}

}  // namespace

TEST_CASE(
    "a checkpoint is read once by any number of ranks, and none sends it more than twice on") {
  const TemporaryFolder folder;
  const SavedState state(5);
  const std::string path = save(state, folder / "run", 1, 600);
  std::int64_t state_bytes = 0;
  for (const auto& [name, bytes] : files_of(path))
    if (name.ends_with(".safetensors")) state_bytes += static_cast<std::int64_t>(bytes.size());
  std::vector<std::int64_t> read;
  for (const int ranks : kWorlds) {
    CAPTURE(ranks);
    MostSent sent;
    const std::int64_t before = bytes_read();
    CHECK(on_ranks(ranks, [&](dist::World& world) {
            const SavedState other(0);
            read_checkpoint(world, path, *other.optimizer);
            if (all_weights_of(other) != all_weights_of(state)) fail("read something else");
            sent.add(sent_to_world(world));
          }).empty());
    read.push_back(bytes_read() - before);
    // What this rank reads, what it passes on, and what readers tell all ranks of.
    const std::int64_t told = 16 * ranks * 4 * static_cast<std::int64_t>(state.list.size());
    // Rank 0 tells all which tensors there are; MPI's broadcast does that as a tree.
    const std::int64_t described = 4 * 3000 * (ranks - 1);
    CHECK(sent.most <= 4 * state_bytes + told + described);
  }
  // Not even the indexes of the sets are read by others than rank 0.
  CHECK(read[1] < read[0] + 1000);
  CHECK(read[1] < 2 * state_bytes);
}

TEST_CASE(
    "a model in any format is opened by some ranks, read once, and has the same values on all") {
  const std::vector<float> values = {0.5f, 1, -2, 3, 0, -0.25f, 7};
  const auto count = static_cast<std::int64_t>(values.size());
  const ModelInMemory model(values);
  for (const int ranks : {3, 64, 130}) {
    CAPTURE(ranks);
    std::atomic<int> opened = 0;
    model.read = 0;
    CHECK(on_ranks(ranks, [&](dist::World& world) {
            const bool opens = CheckpointReading::reader_number(world) >= 0;
            if (opens) ++opened;
            CheckpointReading reading(world, opens ? &model : nullptr, 12);
            // Each rank wants the values from another one on.
            const std::int64_t gap = world.rank() % count;
            std::vector<std::vector<float>> got;
            std::vector<models::RangeTarget> targets;
            got.reserve(model.tensors().size());
            for (const io::TensorView& tensor : model.tensors()) {
              std::vector<float>& own = got.emplace_back(values.size(), 100.f);
              targets.push_back({tensor.name, io::TensorRange::whole(tensor.shape),
                                 [&own, gap](const Tensor& some, std::int64_t begin) {
                                   std::ranges::copy(some.floats(), own.begin() + gap + begin);
                                 },
                                 gap, count - gap});
            }
            reading.check(targets);
            if (reading.try_load(targets).rank >= 0) fail("cannot read");
            for (const std::vector<float>& own : got)
              if (!std::equal(own.begin() + gap, own.end(), values.begin() + gap))
                fail("read something else");
          }).empty());
    CHECK(opened == std::min(ranks, 64));
    CHECK(model.read == ModelInMemory::kTensors * count * 4);
  }
}

TEST_CASE("a set that cannot be read is one failure, and any rank's file is read to the end") {
  const TemporaryFolder folder;
  const SavedState state(5);
  const std::string path = save(state, folder / "run", 1, 600);
  const auto read = [&](dist::World& world) {
    const SavedState other(0);
    read_checkpoint(world, path, *other.optimizer);
  };
  // Of a file whose header is whole; rank 0 has seen that its end was there.
  std::atomic<bool> cut = false;
  const std::string file = path + "/state/adam_m-00002-of-00005.safetensors";
  REQUIRE(io::file_exists(file));
  const auto errors = on_ranks(3, [&](dist::World& world) {
    const SavedState other(0);
    CheckpointReading reading(world, path + "/state", "adam_m");
    world.barrier();
    if (!cut.exchange(true)) std::filesystem::resize_file(file, 100);
    world.barrier();
    std::vector<models::RangeTarget> targets;
    for (nn::Parameter* parameter : other.list)
      targets.push_back(models::range_target(*parameter));
    reading.load(targets);
  });
  REQUIRE(errors.size() == 1);
  CHECK(std::ranges::count_if(errors, [](const std::string& error) {
          return error.find("adam_m-00002-of-00005") != std::string::npos;
        }) == 1);
  const auto missing = on_ranks(3, read);
  CHECK(std::ranges::count_if(missing, [](const std::string& error) {
          return error.find("adam_m-00002-of-00005") != std::string::npos;
        }) == 1);
}

TEST_CASE("a rank tells and keeps no more of parts than those who put them together ask for") {
  const TemporaryFolder folder;
  std::vector<std::int64_t> sent, kept;
  for (const int ranks : kWorlds) {
    CAPTURE(ranks);
    MostSent most, parts;
    CHECK(on_ranks(ranks, [&](dist::World& world) {
            const dist::Mesh mesh(world, cut_in(ranks));
            dist::Group& tp = mesh.group(Axes::tp);
            const SavedState own(5, tp);
            world.traffic().reset();
            const std::vector<bool> cut = cut_parameters(tp, own.list);
            TensorsOfRanks readers(static_cast<std::size_t>(ranks));
            readers[1] = {0, 1};
            readers[3] = {1, 2, 6};
            for (const std::vector<std::size_t>& list : readers)
              for (const std::size_t i : list)
                if (!cut[i]) fail("'{}' is whole", own.list[i]->name);
            const HeldParts held(tp, own.list, readers);
            const dist::Traffic& traffic = world.traffic();
            if (tp.rank() != 1 && tp.rank() != 3)  // these answer all others
              most.add(traffic.of("tp", dist::Operation::all_to_all).bytes);
            std::int64_t count = 0;
            for (std::size_t i = 0; i < own.list.size(); ++i)
              count += static_cast<std::int64_t>(held.parts(i).size());
            parts.add(count);
            if (tp.rank() == 0 && count != 0) fail("keeps parts of others");
          }).empty());
    sent.push_back(most.most);
    kept.push_back(parts.most);
  }
  // By reader and tensor two numbers for each dim, and two.
  CHECK(sent[0] == 8 * (6 + 6 + 6 + 4 + 8));
  CHECK(sent[1] == sent[0]);
  // One part for each rank that has some, so at most one a rank and tensor.
  CHECK(kept[0] <= 3 * kWorlds[0]);
  CHECK(kept[1] <= 3 * kWorlds[1]);
}

TEST_CASE("one rank reads the small files of the data for all") {
  const TemporaryFolder folder;
  write_latents(folder / "data", {.samples = 40});
  RunOptions options;
  options.data = folder / "data";
  std::vector<std::int64_t> read;
  std::int64_t alone = 0;
  const auto open = [&] {
    const auto train = open_latents(options.data, "train");
    const auto val = open_latents(options.data, "val");
    return train->fingerprint() + val->fingerprint();
  };
  const std::int64_t start = bytes_read();
  const std::string expected = open();
  alone = bytes_read() - start;
  for (const int ranks : kWorlds) {
    const std::int64_t before = bytes_read();
    CHECK(on_ranks(ranks, [&](dist::World& world) {
            const data::GivenTexts given(share_small_files(world, options));
            if (open() != expected) fail("opened something else");
          }).empty());
    read.push_back(bytes_read() - before);
  }
  // Threads may read a few bytes of the system's, such as the number of processors.
  CHECK(std::abs(read[1] - read[0]) < 100);
  // A map is not counted where one process reads the list.
  CHECK(read[0] <= alone +
                       static_cast<std::int64_t>(
                           std::filesystem::file_size(folder / "data/train/index.jsonl") +
                           std::filesystem::file_size(folder / "data/val/index.jsonl")) +
                       1000);
}

TEST_CASE("what is given of a folder is what opening it finds") {
  const TemporaryFolder folder;
  write_latents(folder / "data", {.samples = 5});
  const std::vector<std::string> folders = {folder / "data", folder / "none"},
                                 splits = {"train", "val", "test"};
  const data::FileTexts texts = data::read_small_files(folders, splits);
  CHECK(texts.at(folder / "none/latents.json") == std::nullopt);
  CHECK(texts.at(folder / "data/test/index.jsonl") == std::nullopt);
  CHECK(texts.at(folder / "data/train/index.jsonl")->size() ==
        std::filesystem::file_size(folder / "data/train/index.jsonl"));
  // Nothing of a folder is asked for again: even removed files are there.
  std::filesystem::remove(folder / "data/latents.json");
  std::filesystem::remove(folder / "data/train/index.jsonl");
  {
    const data::GivenTexts given(texts);
    CHECK(data::LatentSet(folder / "data", "train").index().size() == 5);
    CHECK_THROWS_WITH(data::LatentSet(folder / "data", "test"),
                      Catch::Matchers::Contains("has no split 'test'"));
  }
  CHECK_THROWS_AS(data::LatentSet(folder / "data", "train"), Error);
}

TEST_CASE("an index.bin that fits is mapped without a look at the list") {
  const TemporaryFolder folder;
  write_latents(folder / "data", {.samples = 5});
  const std::string place = folder / "data/train";
  const Json info = parse_json(io::read_file(folder / "data/latents.json"), "latents.json");
  io::AtomicFile file(place + "/index.bin");
  data::make_index(place + "/index.jsonl", file, info);
  file.commit();
  const std::vector<std::string> folders = {folder / "data"}, splits = {"train"};
  const data::FileTexts texts = data::read_small_files(folders, splits);
  CHECK(texts.at(place + "/index.bin") == "");
  CHECK_FALSE(texts.contains(place + "/index.jsonl"));
  const auto cost = [&] {
    const std::int64_t before = bytes_read();
    CHECK(data::LatentSet(folder / "data", "train").index().size() == 5);
    return bytes_read() - before;
  };
  const std::int64_t without = cost();
  const data::GivenTexts given(texts);
  CHECK(cost() + static_cast<std::int64_t>(std::filesystem::file_size(place + "/index.jsonl")) <=
        without);
}
