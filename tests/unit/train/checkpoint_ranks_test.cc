// Checkpoints of several ranks, which are threads here. tests/cli/train/train-ranks.bats has processes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <mutex>

#include "base/disk_errors.h"
#include "base/error.h"
#include "base/full_disk.h"
#include "base/json.h"
#include "base/log.h"
#include "base/run_end.h"
#include "dist/together.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/lora_file.h"
#include "saved_state.h"
#include "support/temporary_folder.h"
#include "tensor/allocator.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_files.h"
#include "train/checkpoint/file_collection.h"

using namespace vfm;
using namespace vfm::train;
namespace fs = std::filesystem;

namespace {

using State = SavedState;
const std::uint64_t kMaxFileBytes = SaveLimits().file_bytes;

}  // namespace

TEST_CASE("work is dealt by size, the same on all ranks") {
  const std::vector<std::uint64_t> sizes = {3, 9, 3, 3, 7, 0, 3};
  CHECK(dist::deal(sizes, 1) == std::vector<int>(7, 0));
  // 9 | 7 | 3, then 3 and 3 to the third, which has 9; 3 to the second; 0 to the first.
  CHECK(dist::deal(sizes, 3) == std::vector<int>{2, 0, 2, 2, 1, 0, 1});
  CHECK(dist::deal({}, 3).empty());
  const std::vector<std::uint64_t> alike(5, 4);
  CHECK(dist::deal(alike, 8) == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("any number of ranks writes and reads the same checkpoint") {
  const State state(5);
  for (const std::uint64_t limit : {std::uint64_t{600}, kMaxFileBytes}) {
    const TemporaryFolder folder;
    const auto whole = files_of(save(state, folder / "one", 1, limit));
    // By 600 bytes six files and an index of f32, five and one of bf16.
    CHECK(whole.size() == (limit == kMaxFileBytes ? 3 + 4 : 3 + 2 * 7 + 2 * 6));
    models::verify_checkpoint(checkpoint_path(folder / "one", 3));
    for (const int ranks : {1, 2, 3, 5}) {
      // Loaded by as many, and saved again by each of them.
      std::vector<std::string> sames(static_cast<std::size_t>(ranks), "no");
      CHECK(on_ranks(ranks, [&](dist::World& world) {
              const State other(0);
              const std::string newest = newest_good_checkpoint(world, folder / "one");
              read_checkpoint(world, newest, *other.optimizer);
              write_checkpoint(dist::Mesh(world, {}), folder / "many", other.checkpoint(3),
                               {limit});
              const auto self = dist::self_world();
              const std::string own = folder / ("own" + std::to_string(world.rank()));
              write_checkpoint(dist::Mesh(*self, {}), own, other.checkpoint(3), {limit});
              if (files_of(checkpoint_path(own, 3)) == whole)
                sames[static_cast<std::size_t>(world.rank())] = "yes";
            }).empty());
      CHECK(files_of(checkpoint_path(folder / "many", 3)) == whole);
      CHECK(sames == std::vector<std::string>(sames.size(), "yes"));
    }
    CHECK_FALSE(fs::exists(folder / "many/checkpoints/.step-00000003.tmp"));
  }
}

TEST_CASE("what was written with larger files is read, and so are adapters") {
  const TemporaryFolder folder;
  const State state(6, "f32");
  const auto expected = files_of(save(state, folder / "small", 1, 700));
  for (const std::uint64_t limit : {std::uint64_t{1500}, ~std::uint64_t{0}}) {
    const std::string run = folder / std::to_string(limit);
    const std::string old = save(state, run, 1, limit);
    const State other(0, "f32");
    read_checkpoint(*dist::self_world(), old, *other.optimizer);
    CHECK(files_of(save(other, run + "again", 2, 700)) == expected);
  }

  State adapters(7);
  Checkpoint checkpoint = adapters.checkpoint(3);
  checkpoint.adapters = {{"lora_adapter_metadata", "{}"}};
  for (const int ranks : {1, 3})
    CHECK(on_ranks(ranks, [&](dist::World& world) {
            write_checkpoint(dist::Mesh(world, {}), folder / ("lora" + std::to_string(ranks)),
                             checkpoint, {600});
          }).empty());
  const std::string one = checkpoint_path(folder / "lora1", 3);
  CHECK(files_of(one) == files_of(checkpoint_path(folder / "lora3", 3)));
  CHECK(models::has_adapters(one));
  CHECK(fs::exists(one + "/lora/adapter_model.safetensors"));  // in one file, whatever the limit
  const State read(0);
  read_checkpoint(*dist::self_world(), one, *read.optimizer);
  CHECK(files_of(save(read, folder / "a", 1, 600)) ==
        files_of(save(adapters, folder / "b", 1, 600)));
}

TEST_CASE("each file has one writer, and all ranks have about as much to write") {
  const State state(5);
  SavedSet set{"state", "x", DType::f32, {}, state.list, 400};
  set.view = [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    return state.list[i]->view(begin, end);
  };
  const CheckpointFiles alone({set}, 1), shared({set}, 3);
  REQUIRE(alone.files().size() == shared.files().size());
  std::map<std::string, int> writers;
  for (std::size_t i = 0; i < alone.files().size(); ++i) {
    CHECK(alone.name(alone.files()[i]) == shared.name(shared.files()[i]));
    CHECK(alone.files()[i].writer == 0);
  }
  std::mutex mutex;
  dist::thread_worlds(3, [&](dist::World& world) {
    const dist::Mesh mesh(world, {});
    std::map<std::string, std::uint64_t> collected;  // bytes
    const FileCollection collection(shared, mesh.group(dist::Axes::tp));
    const auto failure = collection.run(
        [&](const CheckpointFiles::File& file, std::span<const std::byte> bytes) {
          if (bytes.empty()) CHECK_FALSE(collected.contains(shared.name(file)));
          collected[shared.name(file)] += bytes.size();
        },
        collection.reader());
    const std::lock_guard lock(mutex);
    CHECK(failure == nullptr);
    for (const CheckpointFiles::File& file : shared.files())
      if (file.writer == world.rank()) CHECK(collected.at(shared.name(file)) == file.file.bytes());
    for (const auto& [name, bytes] : collected)
      ++writers[name];
  });
  CHECK(writers.size() == shared.files().size());
  for (const auto& [name, count] : writers)
    CHECK(count == 1);
}

TEST_CASE("a failure on one rank ends the checkpoint on all, and leaves nothing of it") {
  const TemporaryFolder folder;
  const State state(5);
  const std::string before = save(state, folder / "run", 3, 600);
  const auto files = files_of(before);
  const State next(9);
  for (const int bad : {0, 1, 2}) {
    CAPTURE(bad);
    // The newest checkpoint of another run is there; of what comes, one file cannot be made.
    const CheckpointFiles plan(
        {{"model", "diffusion_pytorch_model", DType::f32, {}, next.list, 600},
         {"state", "adam_m", DType::bf16, {}, next.list, 600},
         {"state", "adam_v", DType::bf16, {}, next.list, 600},
         {"state", "ema", DType::f32, {}, next.list, 600}},
        3);
    std::string blocked;
    for (const CheckpointFiles::File& file : plan.files())
      if (file.writer == bad) blocked = plan.name(file);
    REQUIRE_FALSE(blocked.empty());
    const std::string temporary = folder / "run/checkpoints/.step-00000003.tmp";
    std::atomic<bool> go = false;
    fs::create_directories(temporary + "/" + blocked + "/x");
    const auto errors = on_ranks(3, [&](dist::World& world) {
      write_checkpoint(dist::Mesh(world, {}), folder / "run", next.checkpoint(3), {600});
      go = true;
    });
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].starts_with(fmt::format("{}: cannot create '", bad)));
    CHECK(errors[0].find(blocked) != std::string::npos);
    CHECK_FALSE(go);
    CHECK_FALSE(fs::exists(temporary));
    CHECK(files_of(before) == files);
  }
  CHECK(files_of(save(next, folder / "run", 2, 600)) != files);
}

TEST_CASE("a full disk of one rank is an error with its message; alone it ends the run") {
  const auto full = [](dist::World& world, int bad) {
    on_all_ranks(world, [&] {
      if (world.rank() == bad) fail_output(ENOSPC, "cannot write '{}'", "x");
    });
  };
  const auto errors = on_ranks(3, [&](dist::World& world) { full(world, 1); });
  forget_run_end();
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].starts_with("1: cannot write 'x': No space left on device"));
  CHECK_THROWS_AS(full(*dist::self_world(), 0), Stopped);
  forget_run_end();
  {
    const SurvivesFullDisk survives;  // as what writes a checkpoint
    CHECK_THROWS_WITH(full(*dist::self_world(), 0), "cannot write 'x': No space left on device");
    CHECK_FALSE(run_ends());
  }
  // Of several the first speaks.
  const auto several = on_ranks(4, [](dist::World& world) {
    on_all_ranks(world, [&] {
      if (world.rank() >= 2) fail("bad");
    });
  });
  CHECK(several == std::vector<std::string>{"2: bad"});
}

TEST_CASE("tensors that are missing or of another shape are one message on all ranks") {
  const TemporaryFolder folder;
  const State state(5);
  const std::string path = save(state, folder / "run", 2, kMaxFileBytes);
  State other(0);
  other.parameters[0].value = Tensor::zeros({7, 40});
  other.parameters[0].placement = {{7, 40}, {0, 0}};
  other.parameters[2].name = "a.shift";
  const auto errors =
      on_ranks(3, [&](dist::World& world) { read_checkpoint(world, path, *other.optimizer); });
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].starts_with("0: the tensors of '"));
  CHECK(errors[0].find("1 missing: 'a.shift'; 1 unexpected: 'a.bias'; 1 of another shape: "
                       "'b.weight'") != std::string::npos);
  // Half a file: all ranks find it, one says so.
  fs::resize_file(path + "/state/adam_v.safetensors", 900);
  const auto cut = on_ranks(3, [&](dist::World& world) {
    const State third(0);
    read_checkpoint(world, path, *third.optimizer);
  });
  REQUIRE(cut.size() == 1);
  CHECK(cut[0].find("adam_v.safetensors' is truncated") != std::string::npos);
}

TEST_CASE("ranks share out the verification, and agree on what is damaged") {
  const TemporaryFolder folder;
  const State state(5);
  const std::string path = save(state, folder / "run", 1, 600);
  static std::string words;  // of rank 0
  set_log_sink([](LogLevel, std::string_view text) { words += text; }, LogLevel::warning);
  for (const int ranks : {1, 3}) {
    for (const auto& [name, bytes] : files_of(path)) {
      CAPTURE(ranks, name);
      std::string damaged = bytes;
      damaged[name == "COMPLETE" ? 0 : damaged.size() / 2] ^= 1;
      io::write_file(path + "/" + name, damaged);
      words.clear();
      const auto errors = on_ranks(
          ranks, [&](dist::World& world) { newest_good_checkpoint(world, folder / "run"); });
      io::write_file(path + "/" + name, bytes);
      REQUIRE(errors.size() == 1);
      CHECK(errors[0].starts_with("0: none of the checkpoints in '"));
      // COMPLETE begins with the hash of a file.
      const std::string bad = name == "COMPLETE" ? bytes.substr(34, bytes.find('\n') - 34) : name;
      CHECK(words == fmt::format("checkpoint '{}' is damaged: '{}' is not as it was written; going "
                                 "back to the checkpoint before it",
                                 path, bad));
    }
    std::vector<std::string> found(static_cast<std::size_t>(ranks));
    CHECK(on_ranks(ranks, [&](dist::World& world) {
            found[static_cast<std::size_t>(world.rank())] =
                newest_good_checkpoint(world, folder / "run");
            if (!newest_good_checkpoint(world, folder / "none").empty()) fail("found one");
          }).empty());
    CHECK(found == std::vector<std::string>(found.size(), path));
  }
  set_log_sink(nullptr, LogLevel::warning);
}

TEST_CASE("a checkpoint goes through memory in pieces") {
  // Split weights and bf16 moments, which are converted on the way: 96 MiB of f32 each.
  nn::Parameter parameter;
  parameter.name = "large";
  const Shape shape = {3, 8 << 20};
  parameter.placement = {shape, {0, 0}};
  parameter.high = Tensor::zeros(shape, DType::bf16);
  parameter.low = Tensor::zeros(shape, DType::i16);
  const nn::ParameterList list = {&parameter};
  OptimizerRecipe recipe;
  recipe.moments = "bf16";
  EmaRecipe ema;
  ema.mode = "off";
  const Optimizer optimizer(recipe, ema, list);
  const TemporaryFolder folder;
  const auto world = dist::self_world();
  const dist::Mesh mesh(*world, {});
  const auto peak_of = [](const auto& act) {
    reset_memory_peak();
    const std::size_t before = cpu_memory().current;
    act();
    return cpu_memory().peak - before;
  };
  std::string path;
  constexpr std::size_t kMost = std::size_t{64} << 20;
  CHECK(
      peak_of([&] {
        path = write_checkpoint(mesh, folder.path, {1, Json::object(), Json::object(), optimizer});
      }) <= kMost);
  CHECK(peak_of([&] { read_checkpoint(*world, path, optimizer); }) <= kMost);
  CHECK(fs::file_size(path + "/model/diffusion_pytorch_model.safetensors") > (96 << 20));
}
