// The export of a network that other programs store in another way.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/json.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/dit/network_json.h"
#include "models/folder/model_config.h"
#include "models/folder/model_folder.h"
#include "support/made_up_network.h"
#include "support/small_networks.h"
#include "support/temporary_folder.h"
#include "train/checkpoint/export.h"
#include "train/step/trainer.h"

using namespace vfm;

TEST_CASE("export: a made-up architecture goes out under its class's names and comes back") {
  const TemporaryFolder folder;
  const MadeUpNetwork made;
  const auto network = models::make_network(made.config(), 3);
  randomise(network->parameters());
  std::vector<io::TensorView> views;
  std::vector<Tensor> held;
  for (const nn::Parameter* parameter : network->parameters()) {
    held.push_back(parameter->read());
    views.push_back({parameter->name,
                     "F32",
                     parameter->shape(),
                     {held.back().data<std::byte>(), held.back().bytes()}});
  }
  const std::string checkpoint = folder / "run/checkpoints/step-00000002";
  io::make_directories(checkpoint + "/model");
  io::write_safetensors(checkpoint + "/model", "diffusion_pytorch_model", std::move(views));
  io::write_file(checkpoint + "/model/config.json",
                 dump_json(models::network_config_to_json(made.config())));
  io::write_file(
      checkpoint + "/train.json",
      dump_json(
          {{"step", 2}, {"text_padding", 20}, {"state", train::RunState{.step = 2}.to_json()}}));
  std::string complete;
  for (const char* file :
       {"model/config.json", "model/diffusion_pytorch_model.safetensors", "train.json"})
    complete += io::hash_file(checkpoint + "/" + file) + "  " + file + "\n";
  io::write_file(checkpoint + "/COMPLETE", complete);

  train::ExportOptions options;
  options.run = folder / "run";
  options.folder = folder / "out";
  options.parts = train::ExportOptions::Parts::none;
  CHECK(train::export_model(options)["class"] == "WanMadeUp3DModel");
  const io::SafetensorsSet file(options.folder, "diffusion_pytorch_model");
  CHECK(file.find("core.layer_1.attn2.kv.weight"));
  CHECK_FALSE(file.find("transformer_blocks.1.attn2.to_k.weight"));
  const models::ModelFolder back(options.folder, {.types = models::model_class_names()});
  CHECK_NOTHROW(models::check_headers(back, models::read_model_config(back)));
  // The same model, by the bits of all its values.
  CHECK(back.weights().tensors().size() == network->parameters().size());
  CHECK(models::hash_model("x", Json::object(), back.weights()) ==
        models::hash_model("x", Json::object(),
                           models::ModelFolder(options.run, {.average = false}).weights()));
}
