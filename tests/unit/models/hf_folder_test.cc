// Folders of diffusers and transformers: configurations, names, weights, hashes.
// SPDX-License-Identifier: Apache-2.0
#include "models/folder/hf_folder.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/json.h"
#include "base/run_end.h"
#include "base/stop.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/folder/config_json.h"
#include "models/folder/hf_defaults.h"
#include "models/folder/hf_names.h"
#include "models/folder/load_tensors.h"
#include "models/folder/published_config.h"
#include "models/folder/weight_files.h"
#include "support/temporary_folder.h"

using namespace vfm;
using models::HfComponent;

namespace {

/// Tensors without values.
class NamesAndShapes final : public io::TensorSet {
 public:
  void put(const std::string& name, std::vector<std::int64_t> shape) {
    add({name, "BF16", std::move(shape), {}});
  }
};

io::TensorView view(const std::string& name, const std::vector<float>& values) {
  return {
      name, "F32", {static_cast<std::int64_t>(values.size())}, std::as_bytes(std::span(values))};
}

std::string error_of(const std::function<void()>& act, ErrorKind kind = ErrorKind::usage) {
  try {
    act();
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return "no error";
}

std::vector<std::string> today(const char* type, const std::vector<std::string>& names,
                               const Json& config = Json::object()) {
  return models::names_today(type, config, names);
}

}  // namespace

TEST_CASE("a stop while a configuration is read is not one that is wrong") {
  CHECK(error_of([] { models::in_file("x/config.json", [] { fail_usage("'dim' is 0"); }); }) ==
        "'x/config.json': 'dim' is 0");
  CHECK_THROWS_AS(throw_output_error(ENOSPC, "cannot write 'x'"), Stopped);  // stops as signals do
  CHECK_THROWS_AS(models::in_file("x/config.json", [] { check_stop(); }), Stopped);
  forget_run_end();
}

TEST_CASE("hf: trap 21, fields left out of config.json have the defaults of the libraries") {
  const std::string path = std::string(VFM_GOLDEN) + "/config_defaults.json";
  const Json golden = parse_json(io::read_file(path), path);
  REQUIRE(golden.size() == 5);
  for (const auto& [type, fields] : golden.items()) {
    INFO(type);
    const Json ours = models::with_defaults(type, Json::object());
    CHECK(ours.size() == fields.size());
    for (const auto& [key, value] : fields.items()) {
      INFO(key);
      CHECK(ours.value(key, Json("absent")) == value);
    }
  }
  // The statistics of the latents are of one tokenizer: no other network is given them.
  for (const Json& other : {Json{{"num_layers", 1}}, Json{{"patch_size", 2}}})
    for (const char* key : {"latents_mean", "latents_std"})
      CHECK(models::with_defaults("AutoencoderKLCosmos", other)[key] == nullptr);
  // What is given stays, null too; what follows from other fields is not believed.
  const Json given = models::with_defaults(
      "t5", {{"d_model", 7}, {"feed_forward_proj", "gated-silu"}, {"dense_act_fn", "relu"}});
  CHECK(given["d_model"] == 7);
  CHECK(given["is_gated_act"] == true);
  CHECK(given["dense_act_fn"] == "silu");
  CHECK(models::with_defaults("AutoencoderKLCosmos", {{"latents_mean", nullptr}})["latents_mean"] ==
        nullptr);
}

TEST_CASE("hf: trap 20, NVIDIA's names of the transformer are diffusers'") {
  const std::string block = "net.blocks.block13.";
  CHECK(
      today(
          "CosmosTransformer3DModel",
          {"net.x_embedder.proj.1.weight", "net.t_embedder.1.linear_2.weight",
           "net.affline_norm.weight", "net.extra_pos_embedder.pos_emb_t", "net.pos_embedder.seq",
           "logvar.1.weight", block + "blocks.0.block.attn.to_q.0.weight",
           block + "blocks.0.block.attn.to_k.1.weight", block + "blocks.1.block.attn.to_v.0.weight",
           block + "blocks.1.block.attn.to_out.0.weight", block + "blocks.2.block.layer1.weight",
           block + "blocks.2.block.layer2.weight", block + "blocks.1.adaLN_modulation.1.weight",
           block + "blocks.2.adaLN_modulation.2.weight",
           "net.final_layer.adaLN_modulation.1.weight", "net.final_layer.linear.weight",
           block + "blocks.0.block.attn.to_q.0._extra_state"}) ==
      std::vector<std::string>{
          "patch_embed.proj.weight", "time_embed.t_embedder.linear_2.weight",
          "time_embed.norm.weight", "learnable_pos_embed.pos_emb_t", "", "",
          "transformer_blocks.13.attn1.to_q.weight", "transformer_blocks.13.attn1.norm_k.weight",
          "transformer_blocks.13.attn2.to_v.weight", "transformer_blocks.13.attn2.to_out.0.weight",
          "transformer_blocks.13.ff.net.0.proj.weight", "transformer_blocks.13.ff.net.2.weight",
          "transformer_blocks.13.norm2.linear_1.weight",
          "transformer_blocks.13.norm3.linear_2.weight", "norm_out.linear_1.weight",
          "proj_out.weight", ""});
  // Names of today stay, also behind a wrapper's prefix.
  const std::string name = "transformer_blocks.1.attn1.to_out.0.weight";
  CHECK(today("CosmosTransformer3DModel", {name, "proj_out.weight"})[0] == name);
  CHECK(today("CosmosTransformer3DModel",
              {"module._orig_mod." + name, "module._orig_mod.proj_out.weight"})[0] == name);
}

TEST_CASE("hf: trap 20, NVIDIA's names of the tokenizer are diffusers'") {
  const Json config = models::with_defaults("AutoencoderKLCosmos", Json::object());
  CHECK(today("AutoencoderKLCosmos",
              {"encoder.conv_in.0.conv3d.weight", "encoder.patcher3d.wavelets",
               "encoder.down.1.block.0.conv2.1.conv3d.bias",
               "encoder.down.1.block.0.nin_shortcut.conv3d.weight",
               "encoder.down.0.downsample.conv2.conv3d.weight",
               "encoder.mid.block_2.norm1.norm.bias", "encoder.mid.attn_1.1.proj_out.conv3d.weight",
               "decoder.mid.attn_1.0.q.conv3d.weight", "decoder.up.0.block.2.conv1.0.conv3d.weight",
               "decoder.up.2.block.0.norm2.norm.weight", "decoder.up.1.upsample.conv3.conv3d.bias",
               "decoder.conv_out.1.conv3d.weight", "post_quant_conv.conv3d.weight",
               "decoder.unpatcher3d._arange", "quant_conv.conv3d.bias"},
              config) ==
        std::vector<std::string>{"encoder.conv_in.conv_s.weight", "",
                                 "encoder.down_blocks.1.resnets.0.conv2.conv_t.bias",
                                 "encoder.down_blocks.1.resnets.0.conv_shortcut.weight",
                                 "encoder.down_blocks.0.downsamplers.0.conv2.weight",
                                 "encoder.mid_block.resnets.1.norm1.norm.bias",
                                 "encoder.mid_block.temp_attentions.0.to_out.0.weight",
                                 "decoder.mid_block.attentions.0.to_q.weight",
                                 "decoder.up_blocks.2.resnets.2.conv1.conv_s.weight",
                                 "decoder.up_blocks.0.resnets.0.norm2.norm.weight",
                                 "decoder.up_blocks.1.upsamplers.0.conv3.bias",
                                 "decoder.conv_out.conv_t.weight", "post_quant_conv.weight", "",
                                 "quant_conv.bias"});
}

TEST_CASE("hf: the embedding of a T5 is found under either name, its decoder is left out") {
  CHECK(today("t5", {"shared.weight", "encoder.embed_tokens.weight", "decoder.block.0.x",
                     "lm_head.weight", "encoder.final_layer_norm.weight"}) ==
        std::vector<std::string>{"shared.weight", "", "", "", "encoder.final_layer_norm.weight"});
  CHECK(today("umt5", {"encoder.embed_tokens.weight"}) ==
        std::vector<std::string>{"shared.weight"});
}

TEST_CASE("hf: a component is a configuration and weights under names of today") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { HfComponent(folder.path + "/nowhere"); }).find("no such model folder") == 0);
  CHECK(error_of([&] { HfComponent c(folder.path); }).find("has no config.json") !=
        std::string::npos);
  folder.write("config.json", "[1]");
  CHECK(error_of([&] { HfComponent c(folder.path); }).find("not a JSON object") !=
        std::string::npos);
  folder.write("config.json", "{");
  CHECK(error_of([&] { HfComponent c(folder.path); }).find("is not JSON") != std::string::npos);
  folder.write("config.json", "{}");
  CHECK(error_of([&] { HfComponent c(folder.path); }).find("names no model type") !=
        std::string::npos);
  folder.write("config.json", R"({"architectures":["T5EncoderModel"],"model_type":"t5","d_ff":8})");

  const HfComponent component(folder.path);
  CHECK(component.type() == "t5");
  CHECK(component.config()["d_ff"] == 8);
  CHECK(component.config()["d_model"] == 512);
  component.need_type({"umt5", "t5"});
  CHECK(error_of([&] {
          component.need_type({"AutoencoderKLCosmos", "umt5"});
        }).find("of type t5; what works here: AutoencoderKLCosmos, umt5") != std::string::npos);
  CHECK(error_of([&] { component.weights(); }, ErrorKind::runtime).find("has no weights") !=
        std::string::npos);
  const std::vector<float> values(40, 2.f);
  io::write_safetensors(folder.path, "model",
                        {view("encoder.embed_tokens.weight", values), view("b", values)}, 200);
  REQUIRE(component.weights().tensors().size() == 2);
  REQUIRE(component.weights().find("shared.weight") != nullptr);
  CHECK(component.weights().path().ends_with("/model.safetensors.index.json"));
}

TEST_CASE("hf: NVIDIA's own checkpoints say by names and shapes what they are") {
  const auto config_of = [](std::int64_t width, int blocks, std::int64_t channels) {
    NamesAndShapes set;
    set.put("net.x_embedder.proj.1.weight", {width, channels * 4});
    set.put("net.final_layer.linear.weight", {64, width});
    set.put("logvar.0.freqs", {128});
    for (const auto& [axis, size] : {std::pair{"t", 128}, {"h", 120}, {"w", 120}})
      set.put(std::string("net.extra_pos_embedder.pos_emb_") + axis, {size, width});
    for (int i = 0; i < blocks; ++i) {
      const std::string block = "net.blocks.block" + std::to_string(i) + ".blocks.";
      set.put(block + "0.block.attn.to_q.1.weight", {128});
      set.put(block + "0.adaLN_modulation.1.weight", {256, width});
      set.put(block + "1.block.attn.to_k.0.weight", {width, 1024});
      set.put(block + "2.block.layer1.weight", {4 * width, width});
    }
    return models::published_config(set);
  };
  // What is in the tensors, and beside it, is what diffusers takes for granted of the 7B model.
  const Json seven = config_of(4096, 28, 17);
  const Json usual = models::with_defaults("CosmosTransformer3DModel", Json::object());
  for (const auto& [key, value] : seven.items())
    if (key != "_class_name") {
      INFO(key);
      CHECK(value == usual[key]);
    }
  CHECK(seven["_class_name"] == "CosmosTransformer3DModel");
  const Json fourteen = config_of(5120, 36, 18);
  CHECK(fourteen["rope_scale"] == Json({2.0, 2.0, 2.0}));
  CHECK(fourteen["num_layers"] == 36);
  CHECK(fourteen["num_attention_heads"] == 40);
  CHECK(fourteen["in_channels"] == 17);  // one more than comes out: video to world
  CHECK(fourteen["out_channels"] == 16);
  CHECK(error_of([&] { config_of(4100, 1, 17); }).find("is not made of heads of 128") !=
        std::string::npos);
  // NVIDIA's next model has other names.
  NamesAndShapes next;
  next.put("net.x_embedder.proj.1.weight", {2048, 72});
  next.put("net.blocks.0.adaln_modulation_self_attn.1.weight", {256, 2048});
  CHECK(error_of([&] { models::published_config(next); })
            .find("is of Cosmos-Predict2 (its tensors have") != std::string::npos);
  // Of other networks nothing is said.
  NamesAndShapes other;
  other.put("transformer_blocks.0.attn1.to_q.weight", {8, 8});
  CHECK(models::published_config(other).is_null());
}

TEST_CASE("hf: what a config.json beside NVIDIA's own checkpoint says goes before its tensors") {
  const TemporaryFolder folder;
  const std::vector<float> zeros(std::size_t{256} * 32);
  std::vector<io::TensorView> tensors;
  const auto put = [&](const std::string& name, std::vector<std::int64_t> shape) {
    io::TensorView tensor{name, "F32", std::move(shape), std::as_bytes(std::span(zeros))};
    tensor.data = tensor.data.first(tensor.bytes());
    tensors.push_back(std::move(tensor));
  };
  const std::string block = "net.blocks.block0.blocks.";
  put("net.x_embedder.proj.1.weight", {32, 20});
  put("net.final_layer.linear.weight", {16, 32});
  put(block + "0.block.attn.to_q.1.weight", {16});
  put(block + "0.adaLN_modulation.1.weight", {4, 32});
  put(block + "1.block.attn.to_k.0.weight", {32, 8});
  put(block + "2.block.layer1.weight", {64, 32});
  io::write_safetensors(folder.path, "model", std::move(tensors), std::uint64_t{1} << 30);
  const auto config = [&] { return HfComponent(folder.path).config(); };
  CHECK(config()["rope_scale"] == Json({2.0, 1.0, 1.0}));
  CHECK(config()["concat_padding_mask"] == true);
  const std::string plain = HfComponent(folder.path).hash();
  folder.write("config.json",
               R"({"rope_scale":[1.0,3.0,3.0],"concat_padding_mask":false,"own":1})");
  CHECK(config()["_class_name"] == "CosmosTransformer3DModel");
  CHECK(config()["rope_scale"] == Json({1.0, 3.0, 3.0}));
  CHECK(config()["concat_padding_mask"] == false);
  CHECK(!config().contains("own"));
  CHECK(config()["num_attention_heads"] == 2);  // of the tensors
  CHECK(config()["max_size"] == Json({128, 240, 240}));
  CHECK(HfComponent(folder.path).hash() != plain);  // it is another model
  folder.write("config.json", R"({"architectures":["CosmosDiffusion"],"max_size":[128,240,240]})");
  CHECK(HfComponent(folder.path).hash() == plain);  // which it is not by what is no field
}

TEST_CASE("hf: weights may be a torch checkpoint") {
  const TemporaryFolder folder;
  folder.write("config.json", R"({"model_type":"t5"})");
  const std::string golden = std::string(VFM_GOLDEN) + "/torch/";
  const auto put = [&](const char* from, const char* to) {
    std::filesystem::copy_file(golden + from, folder.path + "/" + to);
  };
  put("state_dict.pt", "a.pth");
  const HfComponent one(folder.path);
  CHECK(one.weights().find("a.bf16") != nullptr);
  CHECK(one.hash().size() == 32);
  put("list.pt", "b.pt");
  CHECK(error_of([&] { HfComponent(folder.path).weights(); }, ErrorKind::runtime)
            .find("several torch checkpoints, 'a.pth' and 'b.pt'") != std::string::npos);
  put("training.pt", "pytorch_model.bin");
  CHECK(HfComponent(folder.path).weights().find("down.0.weight") != nullptr);
}

TEST_CASE("hf: the hash is of configuration and values, not of how they are stored") {
  const TemporaryFolder folder;
  const std::vector<float> a(40, 2.f);
  std::vector<float> b(40, 3.f);
  const auto hash = [&](const char* config, std::uint64_t max_bytes) {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path))
      std::filesystem::remove(entry.path());
    folder.write("config.json", config);
    io::write_safetensors(folder.path, "model", {view("a", a), view("b", b)}, max_bytes);
    return HfComponent(folder.path).hash();
  };
  const std::string first = hash(R"({"model_type":"t5","d_ff":8})", 1000);
  CHECK(first.size() == 32);
  CHECK(hash(R"({"model_type":"t5","d_model":512,"d_ff":8,"_name_or_path":"x"})", 200) == first);
  CHECK(hash(R"({"model_type":"t5","d_ff":9})", 1000) != first);
  b.back() = 4.f;
  CHECK(hash(R"({"model_type":"t5","d_ff":8})", 1000) != first);
}

TEST_CASE("hf: everything that does not fit a model is listed before a value is read") {
  const TemporaryFolder folder;
  const std::vector<float> values(4, 1.f);
  const std::vector<std::int64_t> whole(4, 1);
  std::vector<io::TensorView> tensors = {view("a", values), view("wide", values)};
  tensors.push_back({"count", "I64", {4}, std::as_bytes(std::span(whole))});
  for (int i = 0; i < 10; ++i)
    tensors.push_back(view("extra" + std::to_string(i), values));
  io::write_safetensors(folder.path, "model", tensors);
  int stored = 0;
  const auto target = [&](const char* name, Shape shape) {
    return models::TensorTarget{name, std::move(shape), [&](const Tensor&) { ++stored; }};
  };
  const io::SafetensorsSet set(folder.path, "model");
  const std::string message = error_of(
      [&] {
        models::load_tensors(set, {target("a", {4}), target("wide", {2, 2}), target("count", {4}),
                                   target("lost", {1}), target("gone", {1})});
      },
      ErrorKind::runtime);
  CHECK(stored == 0);
  CHECK(message ==
        "the tensors of '" + folder.path +
            "/model.safetensors' are not those of the model: "
            "2 missing: 'lost', 'gone'; 10 unexpected: 'extra0', 'extra1', 'extra2', 'extra3', "
            "'extra4', 'extra5', 'extra6', 'extra7' and 2 more; 1 of another shape: 'wide' is [4], "
            "the "
            "model needs [2, 2]; 1 not of a float type: 'count' is I64");
}

TEST_CASE("hf: f32, f16 and bf16 are read, wherever they begin") {
  alignas(8) std::array<std::byte, 16> bytes{};
  const auto read = [&](const char* dtype, std::size_t at,
                        std::initializer_list<int> little_endian) {
    std::size_t i = at;
    for (const int byte : little_endian)
      bytes[i++] = static_cast<std::byte>(byte);
    const Tensor t =
        models::read_floats({"x", dtype, {1}, std::span(bytes).subspan(at, little_endian.size())});
    return t.floats()[0];
  };
  CHECK(read("F32", 0, {0, 0, 0xc0, 0x3f}) == 1.5f);
  CHECK(read("F32", 3, {0, 0, 0xc0, 0x3f}) == 1.5f);
  CHECK(read("BF16", 2, {0xc0, 0x3f}) == 1.5f);
  CHECK(read("BF16", 1, {0xc0, 0x3f}) == 1.5f);
  CHECK(read("F16", 4, {0, 0x3e}) == 1.5f);
  CHECK(read("F16", 5, {0, 0x3e}) == 1.5f);
  CHECK_THROWS_AS(models::read_floats({"x", "I64", {1}, std::span(bytes).first(8)}), Error);
}

TEST_CASE("hf: weights in shards of .bin, and in a variant, as save_pretrained writes them") {
  const std::string golden = std::string(VFM_GOLDEN);
  const io::SafetensorsSet plain(golden + "/torch/net.safetensors");
  for (const char* form : {"shards", "variant", "variant_shards"}) {
    INFO(form);
    const auto set = models::open_model_weights(golden + "/forms/" + form);
    REQUIRE(set->tensors().size() == plain.tensors().size());
    for (const io::TensorView& tensor : plain.tensors()) {
      REQUIRE(set->find(tensor.name) != nullptr);
      if (tensor.dtype != "F32") continue;  // a counter
      const auto wanted = models::read_floats(tensor);
      const auto found = models::read_floats(*set->find(tensor.name));
      REQUIRE(found.elements() == wanted.elements());
      for (std::int64_t i = 0; i < wanted.elements(); ++i)
        CHECK(std::abs(found.floats()[i] - wanted.floats()[i]) < 1e-3f);
    }
  }
  const TemporaryFolder folder;
  const auto put = [&](const char* to) {
    std::filesystem::copy_file(golden + "/forms/variant/diffusion_pytorch_model.fp16.safetensors",
                               folder.path + "/" + to);
  };
  const auto file = [&] {
    return models::find_weight_file(folder.path, {"diffusion_pytorch_model", "model"});
  };
  put("diffusion_pytorch_model.fp16.safetensors");
  put("diffusion_pytorch_model.bf16.safetensors");
  CHECK(error_of(file, ErrorKind::runtime).find("in several variants") != std::string::npos);
  put("diffusion_pytorch_model.safetensors");  // that of no variant counts
  CHECK(file().ends_with("/diffusion_pytorch_model.safetensors"));
}
