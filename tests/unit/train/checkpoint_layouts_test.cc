// Checkpoints of ranks that hold parts of the model: the same bytes as one rank's, whatever the
// layout.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <tuple>

#include "base/full_disk.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "io/safetensors_reader.h"
#include "latents_fixture.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_tensors.h"
#include "models/folder/lora_file.h"
#include "saved_state.h"
#include "support/temporary_folder.h"
#include "tensor/allocator.h"
#include "train/diffusion/data.h"
#include "train/step/trainer.h"

using namespace vfm;
using namespace vfm::train;
using dist::Axes;

namespace {

const std::array<dist::Layout, 6> kLayouts = {layout_of(2, 1, 1), layout_of(3, 1, 1),
                                              layout_of(2, 2, 1), layout_of(2, 1, 2),
                                              layout_of(1, 2, 2), layout_of(5, 1, 1)};

}  // namespace

TEST_CASE("ranks that hold parts write one rank's checkpoint, and load it on any layout") {
  const TemporaryFolder folder;
  const SavedState state(5);
  for (const SaveLimits limits : {SaveLimits{600, 64}, SaveLimits{600, 12}, SaveLimits{}}) {
    const std::string name = std::to_string(limits.file_bytes);
    const std::string one = save(state, folder / name, 1, limits.file_bytes);
    const auto expected = files_of(one);
    for (const dist::Layout& layout : kLayouts) {
      CAPTURE(to_string(layout), limits.piece_bytes);
      on_mesh(layout, [&](const dist::Mesh& mesh) {
        const SavedState own(5, mesh.group(Axes::tp));
        write_checkpoint(mesh, folder / "drawn", own.checkpoint(3), limits);
        // And what one rank has written, loaded and saved again.
        const SavedState loaded(0, mesh.group(Axes::tp));
        read_checkpoint(mesh.world(), one, *loaded.optimizer);
        if (values_of(loaded) != values_of(own)) fail("loaded something else");
        write_checkpoint(mesh, folder / "loaded", loaded.checkpoint(3), limits);
      });
      CHECK(files_of(checkpoint_path(folder / "drawn", 3)) == expected);
      CHECK(files_of(checkpoint_path(folder / "loaded", 3)) == expected);
    }
  }
  const std::string last = checkpoint_path(folder / "drawn", 3);
  models::verify_checkpoint(last);
  const SavedState read(0);
  read_checkpoint(*dist::self_world(), last, *read.optimizer);
  CHECK(values_of(read) == values_of(state));
}

TEST_CASE("adapters that ranks hold parts of are in the same files") {
  const TemporaryFolder folder;
  const auto write = [&](const dist::Layout& layout, const char* run) {
    on_mesh(layout, [&](const dist::Mesh& mesh) {
      const SavedState state(7, mesh.group(Axes::tp));
      Checkpoint checkpoint = state.checkpoint(3);
      checkpoint.adapters = {{"lora_adapter_metadata", "{}"}};
      write_checkpoint(mesh, folder / run, checkpoint, {600, 64});
    });
    return files_of(checkpoint_path(folder / run, 3));
  };
  const auto whole = write(layout_of(1, 1, 1), "whole");
  CHECK(whole.contains("lora/adapter_model.safetensors"));
  CHECK(write(layout_of(2, 1, 1), "two") == whole);
  CHECK(write(layout_of(3, 2, 1), "six") == whole);
  on_mesh(layout_of(2, 1, 1), [&](const dist::Mesh& mesh) {
    const SavedState loaded(0, mesh.group(Axes::tp)), own(7, mesh.group(Axes::tp));
    read_checkpoint(mesh.world(), checkpoint_path(folder / "whole", 3), *loaded.optimizer);
    if (values_of(loaded) != values_of(own)) fail("loaded something else");
  });
}

TEST_CASE("a rank reads its parts alone, and sends of them what other ranks write") {
  const TemporaryFolder folder;
  const SavedState state(5);
  const std::string path = save(state, folder / "run", 1, 600);
  double whole = 0, cut = 0;  // elements, of parameters that two ranks have whole and in halves
  for (const nn::Parameter* parameter : state.list)
    (parameter->name == "scale" || parameter->name == "c.weight" ? whole : cut) +=
        static_cast<double>(parameter->elements());
  const dist::Layout layout = layout_of(2, 2, 1);
  std::mutex mutex;
  double read = 0, sent = 0, elsewhere = 0;
  const CheckpointFiles plan({{"model", models::kWeightsName, DType::f32, {}, state.list, 600},
                              {"state", "adam_m", DType::bf16, {}, state.list, 600},
                              {"state", "adam_v", DType::bf16, {}, state.list, 600},
                              {"state", "ema", DType::f32, {}, state.list, 600}},
                             4);
  on_mesh(layout, [&](const dist::Mesh& mesh) {
    const SavedState own(0, mesh.group(Axes::tp));
    const io::SafetensorsReader reader(path + "/model", models::kWeightsName);
    std::vector<models::RangeTarget> targets;
    for (nn::Parameter* parameter : own.list)
      targets.push_back(models::range_target(*parameter));
    models::load_ranges(reader, targets);
    mesh.world().traffic().reset();
    write_checkpoint(mesh, folder / "again", own.checkpoint(3), {600, 64});
    const std::lock_guard lock(mutex);
    if (mesh.place(Axes::cp) == 0) read += static_cast<double>(reader.bytes_read());
    sent += static_cast<double>(mesh.world().traffic().of("tp", dist::Operation::send).bytes);
    for (const std::string axis : {"cp", "dp", "cp+dp"})
      elsewhere += static_cast<double>(mesh.world().traffic().of(axis).bytes);
    // Of each file that it writes what the other of its two ranks holds, which is counted there.
    for (const CheckpointFiles::File& file : plan.files())
      if (file.writer == mesh.world().rank())
        for (const io::TensorView& view : file.file.tensors)
          for (const nn::Parameter* parameter : own.list)
            if (parameter->name == view.name)
              sent -= static_cast<double>(view.bytes()) -
                      static_cast<double>(parameter->elements()) *
                          static_cast<double>(io::safetensors_item_size(view.dtype));
  });
  // Two ranks of tp together: one rank's bytes, but for what both have.
  CHECK(read == 4 * (cut + 2 * whole));
  CHECK(sent == 0);
  CHECK(elsewhere == 0);
}

TEST_CASE("a rank that cannot write goes on with what the others need, and one message is said") {
  const TemporaryFolder folder;
  const SavedState state(5);
  const std::string before = save(state, folder / "run", 3, 600);
  const auto files = files_of(before);
  // In the middle of a file: none may have more bytes than that.
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t most : {0, 1300, 2000}) {
    CAPTURE(most);
    const rlimit small{most, old.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const auto errors = on_ranks(6, [&](dist::World& world) {
      const dist::Mesh mesh(world, layout_of(3, 2, 1));
      const SavedState next(9, mesh.group(Axes::tp));
      write_checkpoint(mesh, folder / "run", next.checkpoint(3), {600, 64});
    });
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].find("File too large") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder / "run/checkpoints/.step-00000003.tmp"));
    CHECK(files_of(before) == files);
  }
  std::signal(SIGXFSZ, handler);
}

TEST_CASE("parts that are not all of a parameter, or of another one, are an error") {
  const TemporaryFolder folder;
  const auto errors = on_ranks(2, [&](dist::World& world) {
    const dist::Mesh mesh(world, layout_of(2, 1, 1));
    SavedState state(5, "bf16", 0, 2);  // both have the first part
    write_checkpoint(mesh, folder / "run", state.checkpoint(3));
  });
  REQUIRE_FALSE(errors.empty());
  CHECK(errors[0].find("the ranks of 'tp' have 160 elements of 'b.weight', [40, 7]") !=
        std::string::npos);
}

TEST_CASE("parts go through memory in pieces") {
  const TemporaryFolder folder;
  constexpr std::int64_t kRows = 64, kColumns = 1 << 16;  // 16 MiB of f32
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  std::uint64_t peak = 0;
  on_mesh(layout_of(2, 1, 1), [&](const dist::Mesh& mesh) {
    nn::Parameter parameter;
    parameter.name = "large";
    const dist::Group& tp = mesh.group(Axes::tp);
    const nn::PlacedPart part = nn::cut_part({kRows, kColumns}, {1, tp.rank(), tp.size()});
    parameter.placement = part.placement;
    parameter.high = Tensor::zeros(part.shape, DType::bf16);
    parameter.low = Tensor::zeros(part.shape, DType::i16);
    const nn::ParameterList list = {&parameter};
    OptimizerRecipe recipe;
    recipe.moments = "bf16";
    EmaRecipe ema;
    ema.mode = "off";
    const Optimizer optimizer(recipe, ema, list);
    mesh.world().barrier();
    std::uint64_t before = 0;
    if (tp.rank() == 0) {
      reset_memory_peak();
      before = cpu_memory().current;
    }
    mesh.world().barrier();
    write_checkpoint(mesh, folder.path, {1, Json::object(), Json::object(), optimizer},
                     {SaveLimits().file_bytes, kPiece});
    mesh.world().barrier();
    if (tp.rank() == 0) peak = cpu_memory().peak - before;
  });
  // Of both ranks: a piece, its parts and what is sent of another.
  CHECK(peak <= 2 * 3 * kPiece);
  CHECK(std::filesystem::file_size(checkpoint_path(folder.path, 1) +
                                   "/model/diffusion_pytorch_model.safetensors") > (16 << 20));
}

TEST_CASE("trained models: saved on one rank, loaded and saved by ranks that share them",
          "[long][nightly]") {
  const TemporaryFolder folder;
  write_latents(folder / "data");
  const auto data = open_latents(folder / "data", "train");
  const auto write = [](Trainer& trainer, const std::string& run) {
    write_checkpoint(trainer.parallel().mesh(), run,
                     {2, trainer.objective().config(), Json::object(), trainer.optimizer()},
                     {200000, 3000});
    return checkpoint_path(run, 2);
  };
  for (const char* model : {"dit", "stdit", "moviegen", "dit, compute: bf16"}) {
    const auto recipe_for = [&](int tp, int cp, const char* shard = "none") {
      Recipe recipe = make_recipe(parse_yaml(
          fmt::format("model: {{num_attention_heads: 4, attention_head_dim: 12, num_layers: 2, "
                      "max_size: [4, 8, 8], type: {}}}\n"
                      "data: {{tokens: 16, packs: 4, window: 8}}\n"
                      "parallel: {{tp: {}, cp: {}, cp_kind: all_to_all, shard: {}}}\n",
                      model, tp, cp, shard),
          "recipe"));
      data->fit(recipe);
      return recipe;
    };
    const Recipe alone = recipe_for(1, 1);
    const auto self = dist::self_world();
    Trainer trainer(alone, *data, *self);
    trainer.train_step();
    const std::string saved = write(trainer, folder / "one");
    const auto expected = files_of(saved);
    for (const auto& [tp, cp, ranks, shard, all] : {std::tuple(2, 1, 2, "none", false),
                                                    {4, 1, 4, "none", true},
                                                    {2, 2, 4, "none", false},
                                                    {2, 1, 4, "none", false},
                                                    {1, 1, 2, "optimizer", false},
                                                    {1, 1, 3, "optimizer", false},
                                                    {1, 2, 4, "optimizer", true},
                                                    {2, 1, 4, "optimizer", false},
                                                    {1, 1, 2, "full", false},
                                                    {1, 2, 4, "full", false},
                                                    {2, 1, 4, "full", true}}) {
      if (!all && model != std::string_view("dit"))
        continue;  // what types differ in is in one of a kind
      CAPTURE(model, tp, cp, ranks, shard);
      const Recipe recipe = recipe_for(tp, cp, shard);
      CHECK(on_ranks(ranks, [&](dist::World& world) {
              Trainer other(recipe, *data, world);
              read_checkpoint(world, saved, other.optimizer());
              write(other, folder / "many");
            }).empty());
      CHECK(files_of(checkpoint_path(folder / "many", 2)) == expected);
    }
  }
}
