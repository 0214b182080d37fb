// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "latents_fixture.h"
#include "models/folder/load_model.h"
#include "train/run.h"
#include "train/step/trainer.h"

using namespace vfm;
using namespace vfm::train;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> g_messages;

/// Collects the library's speech for a scope.
struct Listen {
  Listen() {
    g_messages.clear();
    set_log_sink([](LogLevel, std::string_view text) { g_messages.emplace_back(text); },
                 LogLevel::warning);
  }
  ~Listen() { set_log_sink(nullptr, LogLevel::warning); }
};

/// Runs to the end; what would stand on standard output goes to a file.
long train_run(const Recipe& recipe, const std::string& data, const std::string& out,
               bool force = false) {
  const int fd = ::open("/dev/null", O_WRONLY);
  io::ManifestWriter manifest(fd);
  const auto world = dist::self_world();
  RunOptions options;
  options.recipe = recipe;
  options.data = data;
  options.out = out;
  options.force = force;
  options.threads = 1;
  const long failed = run(options, *world, manifest, no_progress());
  ::close(fd);
  return failed;
}

/// All files below `folder` that must not depend on how often the run was interrupted.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    if (entry.is_regular_file() && !name.starts_with("events.") && name != "timing.jsonl")
      files[name] = io::read_file(entry.path());
  }
  return files;
}

void flip_byte(const std::string& path, std::size_t at) {
  std::string bytes = io::read_file(path);
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  io::write_file(path, bytes);
}

std::vector<std::string> names(const std::string& run) {
  std::vector<std::string> result;
  for (const std::string& path : models::list_checkpoints(run))
    result.push_back(io::base_name(path));
  return result;
}

}  // namespace

TEST_CASE("run: stopped and continued, it ends with the same bytes") {
  const TemporaryFolder folder;
  write_latents(folder.path + "/data");
  const std::string data = folder.path + "/data";
  const std::string whole = folder.path + "/whole", parts = folder.path + "/parts";
  const Recipe recipe = tiny_recipe("validation: {every: 3}");
  CHECK(train_run(recipe, data, whole) == 0);
  CHECK(names(whole) == std::vector<std::string>{"step-00000004", "step-00000006"});

  train_run(tiny_recipe("validation: {every: 3}\ntrain: {steps: 3}"), data, parts);
  CHECK(names(parts) == std::vector<std::string>{"step-00000002", "step-00000003"});
  // What a kill between two checkpoints leaves behind.
  io::write_file(parts + "/metrics.jsonl",
                 io::read_file(parts + "/metrics.jsonl") + "{\"step\":4,\"loss\":1}\n{\"ste");
  fs::create_directories(parts + "/checkpoints/.step-00000004.tmp/model");
  train_run(recipe, data, parts);
  CHECK(contents(parts) == contents(whole));

  // Nothing left to do: nothing changes.
  train_run(recipe, data, parts);
  CHECK(contents(parts) == contents(whole));
}

TEST_CASE("run: a damaged checkpoint is named, and the one before it is used") {
  const TemporaryFolder folder;
  write_latents(folder.path + "/data");
  const std::string data = folder.path + "/data", out = folder.path + "/run";
  train_run(tiny_recipe(), data, out);
  const auto good = contents(out);
  const std::string newest = out + "/checkpoints/step-00000006";
  flip_byte(newest + "/state/adam_v.safetensors", 900);
  CHECK_THROWS_WITH(models::verify_checkpoint(newest),
                    Catch::Contains("'state/adam_v.safetensors' is not as it was written"));
  {
    const Listen listen;
    train_run(tiny_recipe(), data, out);
    REQUIRE(g_messages.size() == 2);
    CHECK(g_messages[0].find("state/adam_v.safetensors") != std::string::npos);
    CHECK(g_messages[0].find("going back to the checkpoint before it") != std::string::npos);
    CHECK(g_messages[1].find("goes on after step 4 of 6") != std::string::npos);
  }
  CHECK(contents(out) == good);

  fs::remove(newest + "/train.json");
  flip_byte(out + "/checkpoints/step-00000004/COMPLETE", 3);
  const Listen listen;
  CHECK_THROWS_WITH(train_run(tiny_recipe(), data, out), Catch::Contains("--force starts over"));
  CHECK(fs::exists(newest));  // nothing was removed
  train_run(tiny_recipe(), data, out, true);
  CHECK(contents(out) == good);
}

TEST_CASE("run: another recipe or other data are refused, lengths may change") {
  const TemporaryFolder folder;
  write_latents(folder.path + "/data");
  write_latents(folder.path + "/other", {11, -1});
  const std::string data = folder.path + "/data", out = folder.path + "/run";
  train_run(tiny_recipe("train: {steps: 2}"), data, out);
  try {
    train_run(tiny_recipe("optimizer: {beta1: 0.5}\nema: {decay: 0.5}"), data, out);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(std::string(error.what()).find("optimizer.beta1: 0.9 -> 0.5; ema.decay: 0.999 -> 0.5") !=
          std::string::npos);
  }
  CHECK_THROWS_WITH(train_run(tiny_recipe(), folder.path + "/other", out),
                    Catch::Contains("other data"));
  train_run(tiny_recipe("train: {steps: 4, keep: 1}"), data, out);
  CHECK(names(out) == std::vector<std::string>{"step-00000004"});
}

TEST_CASE("checkpoint: the raw weights and the average load as models") {
  const TemporaryFolder folder;
  write_latents(folder.path + "/data");
  const std::string out = folder.path + "/run";
  train_run(tiny_recipe(), folder.path + "/data", out);
  const models::LoadedModel raw = models::load_model(models::OpenedModel(out, false));
  const models::LoadedModel ema =
      models::load_model(models::OpenedModel(out + "/checkpoints/step-00000006", true));
  CHECK(ema.ema);
  CHECK_FALSE(raw.ema);
  CHECK(ema.folder == raw.folder);
  CHECK(raw.facts.step == 6);
  CHECK(raw.facts.largest.frames == 2);
  const auto first = [](const models::LoadedModel& model) {
    return model.network->parameters()[0]->value.floats()[0];
  };
  CHECK(first(raw) != first(ema));
  CHECK_THROWS_WITH(models::load_model(models::OpenedModel(folder.path, true)),
                    Catch::Contains("holds no model"));
  flip_byte(raw.folder + "/model/config.json", 5);
  CHECK_THROWS_WITH(models::load_model(models::OpenedModel(out, true)),
                    Catch::Contains("'model/config.json'"));
}

TEST_CASE("checkpoint: which ones stay") {
  const TemporaryFolder folder;
  const auto make = [&](int step) {
    fs::create_directories(checkpoint_path(folder.path, step));
    io::write_file(checkpoint_path(folder.path, step) + "/COMPLETE", "");
  };
  const auto left = [&](int step, int keep, int keep_every = 0) {
    prune_checkpoints(folder.path, step, 10, 35, keep, keep_every);
    std::vector<std::string> result;
    for (const std::string& name : names(folder.path))
      result.push_back(name.substr(11));
    return result;
  };
  using List = std::vector<std::string>;
  for (const int step : {10, 20, 23})
    make(step);
  CHECK(left(23, 2) == List{"10", "20", "23"});  // saved on request: beside the regular ones
  make(30);
  CHECK(left(30, 2) == List{"20", "30"});
  make(35);  // the last step counts as regular
  CHECK(left(35, 2) == List{"30", "35"});
  make(40);  // of a run that went another way, or damaged
  CHECK(left(35, 2) == List{"30", "35"});
  CHECK(left(35, 1) == List{"35"});
  for (const int step : {5, 10, 15, 20, 30, 45})
    make(step);
  CHECK(left(35, 1, 15) == List{"15", "30", "35"});  // for ever, whatever their kind
  CHECK(left(35, 2, 30) == List{"30", "35"});
}

TEST_CASE("run: checkpoints by time, of which the newest stay") {
  const TemporaryFolder folder;
  write_latents(folder.path + "/data");
  const std::string out = folder.path + "/run";
  // So little that each step is late.
  const Recipe recipe = tiny_recipe(
      "train: {checkpoint_every: 100, checkpoint_minutes: 1e-9, keep: 3, keep_every: 2}");
  train_run(recipe, folder.path + "/data", out);
  CHECK(names(out) == std::vector<std::string>{"step-00000002", "step-00000004", "step-00000005",
                                               "step-00000006"});
}
