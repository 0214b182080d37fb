// Checkpoints that are written beside steps, by ranks that are threads.
// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_saver.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "base/json.h"
#include "base/log.h"
#include "io/atomic_file.h"
#include "io/folder.h"
#include "models/folder/checkpoint_folder.h"
#include "saved_state.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::train;
namespace fs = std::filesystem;

namespace {

/// What the end of a step does; and then, until the checkpoint has ended.
SavedCheckpoint follow(dist::World& world, CheckpointSaver& saver) {
  for (;;) {
    const SaveNotes own = saver.notes();
    std::array<double, 2> sums = {own.done, own.failed};
    world.all_reduce_sum(std::span<double>(sums));
    if (const auto ended = saver.advance({.done = sums[0], .failed = sums[1]})) return *ended;
    std::this_thread::yield();
  }
}

/// As the steps after a checkpoint would.
void overwrite(const SavedState& state) {
  const auto fill = [](const Tensor& tensor) { std::memset(tensor.raw(), 0x3f, tensor.bytes()); };
  for (std::size_t i = 0; i < state.list.size(); ++i) {
    const nn::Parameter& parameter = *state.list[i];
    for (const Tensor& tensor : {parameter.value, parameter.high, parameter.low})
      if (tensor.defined()) fill(tensor);
    for (const Tensor& tensor :
         {state.optimizer->state("adam_m").tensors[i], state.optimizer->state("adam_v").tensors[i],
          state.optimizer->ema()[i]})
      fill(tensor);
  }
}

bool has_memory_folder() {
  struct statfs facts {};
  return ::statfs(kMemoryFolder, &facts) == 0 && facts.f_type == TMPFS_MAGIC;
}

}  // namespace

TEST_CASE("a checkpoint that is written beside steps has the bytes of one that they wait for") {
  const TemporaryFolder folder;
  for (const dist::Layout& layout : {layout_of(1, 1, 1), layout_of(3, 1, 1), layout_of(2, 1, 2)}) {
    CAPTURE(to_string(layout));
    const auto write = [&](const char* name, SaveLimits limits, const std::string& memory) {
      const std::string run = folder / name;
      fs::remove_all(run);
      on_mesh(layout, [&](const dist::Mesh& mesh) {
        const SavedState state(5, mesh.group(dist::Axes::tp));
        limits.file_bytes = 4000, limits.piece_bytes = 64;
        CheckpointSaver saver(mesh, run, limits, memory);
        saver.begin(state.checkpoint(3));
        overwrite(state);
        const SavedCheckpoint saved = follow(mesh.world(), saver);
        if (!saved.complete || saved.step != 3 || saver.pending()) fail("not saved");
        if (saved.folder != checkpoint_path(run, 3)) fail("saved in '{}'", saved.folder);
        saver.forget();
      });
      models::verify_checkpoint(checkpoint_path(run, 3));
      CHECK(snapshot_files(run, memory).empty());
      return files_of(checkpoint_path(run, 3));
    };
    static std::atomic<int> words;
    words = 0;
    set_log_sink(
        [](LogLevel, std::string_view text) {
          words += text.find("have no room in their host's memory") != text.npos;
        },
        LogLevel::warning);
    const auto waited = write("waited", {.snapshot_bytes = 0}, folder.path);
    set_log_sink(nullptr, LogLevel::warning);
    CHECK(words == 1);
    CHECK(write("process", {}, folder.path) == waited);
    CHECK(write("shared", {}, kMemoryFolder) == waited);
  }
}

TEST_CASE("room for a snapshot is made before it comes, and goes with a run that makes none") {
  if (!has_memory_folder()) return;
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  fs::create_directory(run);
  const SavedState state(5);
  const auto self = dist::self_world();
  const dist::Mesh mesh(*self, {});
  /// Files of /dev/shm that have room for a snapshot of this run: no hash is in their names.
  const auto rooms = [&] {
    std::set<fs::path> found;
    for (const auto& entry : fs::directory_iterator(kMemoryFolder))
      if (std::error_code error; fs::read_symlink(entry.path() / "run", error) == run)
        for (const auto& file : fs::directory_iterator(entry.path()))
          if (!file.is_symlink()) found.insert(file.path());
    return found;
  };
  std::optional<CheckpointSaver> saver(std::in_place, mesh, run);
  saver->prepare(state.checkpoint(3));
  saver.reset();
  CHECK(rooms().empty());
  saver.emplace(mesh, run);
  saver->prepare(state.checkpoint(3));
  for (int i = 0; i < 500 && rooms().size() < 4; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto made = rooms();
  CHECK(made.size() == 4);  // model, two moments, average
  saver->begin(state.checkpoint(3));
  CHECK(rooms() == made);
  CHECK(saver->finish()->complete);
  CHECK(snapshot_files(run).size() == 4);
  saver->forget();
  CHECK(rooms().empty());
}

TEST_CASE("no rank goes on to the next step before the slowest has written what it must") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const dist::Layout layout = layout_of(1, 1, 6);  // two ranks have no file
  std::array<int, 6> seen{};
  on_mesh(layout, [&](const dist::Mesh& mesh) {
    const SavedState state(5);
    CheckpointSaver saver(mesh, run, {.snapshot_bytes = 0}, folder.path);
    saver.begin(state.checkpoint(3));
    for (const io::FolderEntry& entry :
         io::files_below(io::join_path(run, "checkpoints/.step-00000003.tmp")))
      if (!io::base_name(entry.name).starts_with('.'))
        ++seen.at(static_cast<std::size_t>(mesh.world().rank()));
    if (!follow(mesh.world(), saver).complete) fail("not saved");
  });
  for (const int files : seen)
    CHECK(files == 4);
}

TEST_CASE("the newest complete snapshot stays in memory, and is read in place of the disk") {
  if (!has_memory_folder()) return;
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  fs::create_directory(run);
  const SavedState first(5), second(6);
  const auto values = values_of(first), later = values_of(second);
  /// The files of a step that are in memory, as COMPLETE has them.
  const auto in_memory = [&](std::int64_t step) {
    const FileCopies copies = snapshot_files(run);
    const std::string complete = io::read_file(checkpoint_path(run, step) + "/COMPLETE");
    int count = 0;
    for (const auto& [name, hash] : models::parse_complete(complete, "COMPLETE"))
      if (copies.contains(hash)) {
        CHECK(io::hash_file(copies.at(hash)) == hash);
        ++count;
      }
    return count;
  };
  const auto self = dist::self_world();
  const dist::Mesh mesh(*self, {});
  {
    CheckpointSaver saver(mesh, run);
    saver.begin(first.checkpoint(3));
    CHECK(saver.finish()->complete);
    CHECK(in_memory(3) == 4);  // model, two moments, average
    saver.begin(second.checkpoint(4));
    CHECK(in_memory(3) == 4);  // until the other is complete
    CHECK(saver.finish()->complete);
    CHECK(in_memory(4) == 4);
    // A third one goes over the first, whose names are gone before a byte of them changes.
    saver.begin(first.checkpoint(5));
    CHECK(in_memory(4) == 4);
    CHECK(saver.finish()->complete);
    CHECK(in_memory(5) == 4);
  }  // as if it was killed
  // Of step 4 the disk has lost all tensors, of 5 the memory has nothing that the disk has not.
  const std::string lost = checkpoint_path(run, 5);
  for (const char* name :
       {"/model/diffusion_pytorch_model.safetensors", "/state/adam_m.safetensors"})
    fs::resize_file(lost + name, fs::file_size(lost + name) - 1);
  const FileCopies copies = snapshot_files(run);
  CHECK(newest_good_checkpoint(*self, run, copies) == lost);
  const SavedState read(0);
  read_checkpoint(*self, lost, *read.optimizer, Tables::same, {}, copies);
  CHECK(values_of(read) == values);
  // Ranks get what is in the memory of another one's host.
  for (const int having : {0, 1, 2})
    CHECK(on_ranks(3, [&](dist::World& world) {
            const FileCopies own = world.rank() == having ? copies : FileCopies();
            if (newest_good_checkpoint(world, run, own) != lost) fail("not the newest");
            const SavedState other(0);
            read_checkpoint(world, lost, *other.optimizer, Tables::same, {}, own);
            if (values_of(other) != values) fail("read something else");
          }).empty());
  remove_snapshots(run);
  CHECK(snapshot_files(run).empty());
  CHECK_FALSE(newest_good_checkpoint(*self, run) == lost);
}

TEST_CASE("a folder of others in memory is not used") {
  if (!has_memory_folder()) return;
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  SnapshotMemory own(run, 0);
  CHECK(own.begin({100}, 100) == SnapshotMemory::Place::shared);
  own.name(0, std::string(32, 'a'));
  own.prepare();
  own.keep();
  const std::string made = io::dir_name(snapshot_files(run).at(std::string(32, 'a')));
  CHECK(fs::status(made).permissions() == fs::perms::owner_all);
  CHECK(fs::read_symlink(made + "/run") == io::canonical_path(run));
  fs::permissions(made, fs::perms::owner_all | fs::perms::others_write);
  CHECK(snapshot_files(run).empty());
  SnapshotMemory other(run, 1);
  CHECK(other.begin({100}, 100) == SnapshotMemory::Place::process);
  CHECK(other.begin({100}, 1e18) == SnapshotMemory::Place::process);  // it has it already
  CHECK(other.begin({200}, 1e18) == SnapshotMemory::Place::none);
  fs::permissions(made, fs::perms::owner_all);
  // Other runs remove what is old, but not what a start has looked at.
  const auto yesterday = fs::file_time_type::clock::now() - std::chrono::hours(25);
  fs::last_write_time(made, yesterday);
  CHECK(snapshot_files(run).size() == 1);
  remove_snapshots(folder / "another");
  CHECK(fs::exists(made));
  // In another container the path may be that of another folder.
  fs::create_directory(run);
  CHECK(snapshot_files(run).empty());
  fs::remove(run);
  CHECK(snapshot_files(run).size() == 1);
  own.remove();
  CHECK_FALSE(fs::exists(made));
  SnapshotMemory left(run, 0);
  CHECK(left.begin({100}, 100) == SnapshotMemory::Place::shared);
  fs::last_write_time(made, yesterday);
  remove_snapshots(folder / "another");
  CHECK_FALSE(fs::exists(made));
}

TEST_CASE(
    "a disk that fails costs one checkpoint: what is complete stays, and the next is written") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", checkpoints = run + "/checkpoints";
  const SavedState state(5), next(9);
  const auto before = files_of(save(state, run, 3, 600));
  // On the disk of one rank a file is in the place of a folder, or a folder of COMPLETE.
  for (const char* blocked : {"state", "COMPLETE"}) {
    CAPTURE(blocked);
    const std::string building = checkpoints + "/.step-00000004.tmp/";
    fs::create_directories(building);
    if (std::string_view(blocked) == "state")
      io::write_file(building + blocked, "x");
    else
      fs::create_directories(building + blocked + "/x");
    std::atomic<int> failed = 0, named = 0, complete = 0;
    CHECK(on_ranks(3, [&](dist::World& world) {
            const dist::Mesh mesh(world, {});
            CheckpointSaver saver(mesh, run, {600});
            saver.begin(next.checkpoint(4));
            const SavedCheckpoint saved = follow(world, saver);
            failed += !saved.complete;
            named += saved.failure.find(blocked) != std::string::npos;
            saver.begin(next.checkpoint(5));
            complete += saver.finish()->complete;
            saver.forget();
          }).empty());
    CHECK(failed == 3);
    CHECK(named == 1);  // on rank 0
    CHECK(complete == 3);
    CHECK_FALSE(fs::exists(building));
    CHECK_FALSE(fs::exists(checkpoint_path(run, 4)));
    CHECK(files_of(checkpoint_path(run, 3)) == before);
    models::verify_checkpoint(checkpoint_path(run, 5));
    fs::remove_all(checkpoint_path(run, 5));
  }
}

TEST_CASE("a checkpoint that takes too long ends the run, and who writes what is said") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const SavedState state(5);
  const auto hang = [] {
    for (;; std::this_thread::yield())
      check_stop();
  };
  const auto errors = on_ranks(2, [&](dist::World& world) {
    const dist::Mesh mesh(world, {});
    CheckpointSaver saver(mesh, run, {600}, folder.path);
    saver.begin(state.checkpoint(3), {.before = hang, .after = {}});
    saver.finish(0.2);
  });
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].find("the checkpoint of step 3 is not written after 0.2 s") != errors[0].npos);
  CHECK(errors[0].find("rank 0 on host ") != errors[0].npos);
  CHECK(errors[0].find("writes '" + run + "/checkpoints/.step-00000003.tmp'") != errors[0].npos);
  CHECK(models::list_checkpoints(run).empty());
}

TEST_CASE("a checkpoint that is abandoned leaves the one before it") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const SavedState state(5);
  const auto before = files_of(save(state, run, 3, 600));
  CHECK(on_ranks(2, [&](dist::World& world) {
          const dist::Mesh mesh(world, {});
          CheckpointSaver saver(mesh, run, {600});
          saver.begin(state.checkpoint(4));
          saver.forget();
        }).empty());
  CHECK(files_of(checkpoint_path(run, 3)) == before);
  CHECK_FALSE(fs::exists(checkpoint_path(run, 4)));
  CHECK(snapshot_files(run).empty());
}
