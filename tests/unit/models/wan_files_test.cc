// Wan in files of other layouts than diffusers': 8-bit floats with factors, GGUF, the names of its
// authors, files beside each other. The files of tests/golden/wan_files are by torch and the gguf
// package (scripts/golden/wan_files.py).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/float8.h"
#include "base/half.h"
#include "base/json.h"
#include "dist/threads.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/dit/architecture.h"
#include "models/dit/network_json.h"
#include "models/folder/hf_folder.h"
#include "models/folder/load_tensors.h"
#include "models/folder/load_together.h"
#include "models/folder/model_facts.h"
#include "models/folder/model_folder.h"
#include "models/folder/scaled_weights.h"
#include "models/folder/weight_files.h"
#include "models/t5/t5.h"
#include "models/text_encoder.h"
#include "models/tokenizer_family.h"
#include "models/wan/wan.h"
#include "support/distance.h"
#include "support/noise.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::models;
using Catch::Contains;

namespace {

namespace fs = std::filesystem;

const std::string kWanFiles = std::string(VFM_GOLDEN) + "/wan_files";

const io::SafetensorsSet& golden_numbers() {
  static const io::SafetensorsSet set(kWanFiles, "numbers");
  return set;
}

bool same_bits(const Tensor& values, const io::TensorView& expected) {
  // Any NaN is as good as another.
  const Tensor wanted = read_floats(expected);
  for (std::int64_t i = 0; i < values.elements(); ++i) {
    const float a = values.data<float>()[i], b = wanted.data<float>()[i];
    if (std::memcmp(&a, &b, sizeof a) != 0 && !(std::isnan(a) && std::isnan(b))) return false;
  }
  return values.elements() == wanted.elements();
}

/// A tensor to be written, with its bytes.
struct FileTensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  io::TensorView view() const { return {name, dtype, shape, bytes}; }
};

template <class T>
FileTensor file_tensor(const std::string& name, const std::string& dtype,
                       std::vector<std::int64_t> shape, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {name, dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

void write_tensors(const std::string& path, const std::vector<FileTensor>& tensors) {
  std::vector<io::TensorView> views;
  for (const FileTensor& tensor : tensors)
    views.push_back(tensor.view());
  const std::string name = fs::path(path).stem().string();
  io::write_safetensors(fs::path(path).parent_path().string(), name, views);
}

/// Writes F32 and Q8_0 as the converters of ComfyUI-GGUF do.
void write_gguf(const std::string& path, const std::string& architecture,
                const std::vector<FileTensor>& tensors) {
  std::string all = "GGUF";
  const auto number = [&](auto value) {
    all.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const auto text = [&](const std::string& value) {
    number(std::uint64_t{value.size()});
    all += value;
  };
  const auto pad = [](std::size_t size) { return (size + 31) / 32 * 32; };
  const auto is_flat = [](const FileTensor& one) { return one.shape.size() > 4; };
  const auto flat = std::ranges::count_if(tensors, is_flat);
  number(std::uint32_t{3});
  number(std::uint64_t{tensors.size()});
  number(static_cast<std::uint64_t>(1 + flat));
  text("general.architecture");
  number(std::uint32_t{8});
  text(architecture);
  for (const FileTensor& one : tensors) {
    if (!is_flat(one)) continue;
    text("comfy.gguf.orig_shape." + one.name);
    number(std::uint32_t{9});
    number(std::uint32_t{5});
    number(std::uint64_t{one.shape.size()});
    for (const std::int64_t size : one.shape)
      number(static_cast<std::int32_t>(size));
  }
  std::uint64_t offset = 0;
  for (const FileTensor& one : tensors) {
    std::vector<std::int64_t> shape = one.shape;
    if (is_flat(one)) shape = {shape[0], one.view().elements() / shape[0]};
    text(one.name);
    number(static_cast<std::uint32_t>(shape.size()));
    for (std::size_t i = shape.size(); i-- > 0;)
      number(static_cast<std::uint64_t>(shape[i]));
    number(std::uint32_t{one.dtype == "Q8_0" ? 8u : 0u});
    number(offset);
    offset += pad(one.bytes.size());
  }
  all.resize(pad(all.size()));
  for (const FileTensor& one : tensors) {
    all.append(reinterpret_cast<const char*>(one.bytes.data()), one.bytes.size());
    all.resize(pad(all.size()));
  }
  const fs::path file(path);
  io::write_file(file.string(), all);
}

using Values = std::map<std::string, std::vector<float>>;

/// A tiny network with values, and files of it.
struct WanOfFiles {
  NetworkConfig config;
  std::unique_ptr<DiffusionNetwork> network;

  explicit WanOfFiles(int in_channels = 4) {
    config = default_config(kWan);
    config.num_attention_heads = 1;
    config.num_layers = 2;
    config.text_embed_dim = 6;
    config.in_channels = in_channels, config.out_channels = in_channels == 36 ? 16 : in_channels;
    config.own<WanFields>().ffn_dim = 32;
    config.own<WanFields>().freq_dim = 8;
    network = make_network(config, 1);
    std::uint64_t key = 1;
    for (const nn::Parameter* p : network->parameters())
      p->write(noise_tensor(p->shape(), key++));
  }

  /// F32 under the authors' names.
  std::vector<FileTensor> tensors(const std::string& prefix = "") const {
    const TensorForm& form = kWan.foreign->tensors.front();
    std::vector<FileTensor> all;
    for (const nn::Parameter* p : network->parameters()) {
      const std::string name = name_there(form, p->name).substr(form.prefix.size());
      const std::vector<float> values(p->value.floats().begin(), p->value.floats().end());
      const bool patch = p->name == "patch_embed.proj.weight";
      const std::vector<std::int64_t> shape =
          patch ? form.reshaped[0].there(config)
                : std::vector<std::int64_t>(p->shape().begin(), p->shape().end());
      all.push_back(file_tensor(prefix + name, "F32", shape, values));
    }
    return all;
  }

  static std::vector<float> floats_of(const FileTensor& tensor) {
    std::vector<float> values(tensor.bytes.size() / 4);
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }

  /// What the file is loaded as, by the order of parameters.
  void check_loaded(const std::string& path,
                    const std::vector<std::vector<float>>& expected) const {
    const HfComponent component(path);
    const NetworkConfig found = network_config_from_json(component.config());
    CHECK(network_config_to_json(found) == network_config_to_json(config));
    const auto loaded = make_network(found, 2);
    load_parameters(component.weights(), loaded->parameters());
    REQUIRE(loaded->parameters().size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const nn::Parameter& p = *loaded->parameters()[i];
      INFO(p.name);
      CHECK(largest_difference(p.value.floats(), expected[i]) == 0);
    }
  }
};

/// The golden text encoder of a file.
void check_encoder(const std::string& file, const std::string& name, int vocabulary) {
  const HfComponent component(file);
  CHECK(component.type() == "umt5");
  CHECK(component.config()["vocab_size"] == vocabulary);
  CHECK(component.config()["num_layers"] == 2);
  CHECK(component.config_path() == file);
  const T5Config config = T5Config::from_json(component.config(), component.type(), "it");
  const T5 model(config, component.weights(), DType::f32, Device::cpu);
  const std::vector<std::int32_t> ids{5, 17, 40, 9, 61, 1};
  const std::vector<std::int64_t> lengths{6};
  const Tensor expected = read_floats(*golden_numbers().find(name));
  CHECK(distance(model.encode(ids, lengths).floats(), expected.floats()) < 1e-5);
}

/// A VAE as far as a layout looks.
void write_vae_names(const std::string& path) {
  write_tensors(path, {file_tensor<float>("decoder.middle.0.residual.2.bias", "F32", {1}, {1})});
}

std::string refused_scales(std::vector<FileTensor> tensors) {
  const TemporaryFolder folder;
  write_tensors(folder / "model.safetensors", tensors);
  try {
    open_weight_file(folder / "model.safetensors");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("wan files: 8-bit floats are the numbers of torch, times their factors, to the bit") {
  const auto set = open_weight_file(kWanFiles + "/eight_bits.safetensors");
  CHECK(set->tensors().size() == 6);  // neither factors nor markers
  for (const io::TensorView& tensor : set->tensors()) {
    const std::string name = tensor.name.substr(0, tensor.name.find('.'));
    INFO(name);
    CHECK(is_coded(tensor));
    CHECK(same_bits(read_floats(tensor), *golden_numbers().find(name)));
  }
  const io::TensorView& rows = *set->find("rows.weight");
  CHECK(rows.scales.size() == 4);
  CHECK(set->find("none.weight")->scales.empty());
  const Tensor all = read_floats(rows);
  for (const std::int64_t first : {0, 5, 31, 32, 127}) {
    const std::int64_t count = std::min<std::int64_t>(70, 128 - first);
    const Tensor some = read_floats(rows, first, count);
    CHECK(std::memcmp(some.raw(), all.data<float>() + first, some.bytes()) == 0);
  }
}

TEST_CASE("wan files: blocks of Q5_K are the numbers of the gguf package, to the bit") {
  const auto set = open_weight_file(kWanFiles + "/five_bits.gguf");
  const io::TensorView& blocks = *set->find("five_bits");
  CHECK(blocks.dtype == "Q5_K");
  const io::TensorView& expected = *golden_numbers().find("five_bits");
  CHECK(blocks.shape == expected.shape);
  CHECK(same_bits(read_floats(blocks), expected));
  const Tensor all = read_floats(expected);
  for (const std::int64_t first : {0, 5, 255, 256, 1100}) {
    const Tensor some = read_floats(blocks, first, 300);
    CHECK(std::memcmp(some.raw(), all.data<float>() + first, some.bytes()) == 0);
  }
}

TEST_CASE("wan files: factors without a weight in 8 bits, or of another number, are refused") {
  const auto weight = [](const char* dtype) {
    return file_tensor<std::uint8_t>("a.weight", dtype, {2, 3}, {1, 2, 3, 4, 5, 6});
  };
  const auto factors = [](const char* name, std::vector<float> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return file_tensor<float>(name, "F32", {count}, values);
  };
  const auto said = [](const std::string& text) {
    return file_tensor<char>("a.comfy_quant", "U8", {static_cast<std::int64_t>(text.size())},
                             {text.begin(), text.end()});
  };
  const FileTensor right = weight("F8_E4M3");
  CHECK(refused_scales({right, factors("a.weight_scale", {2})}).empty());
  CHECK(refused_scales({right, said(R"({"format":"float8_e4m3fn"})")}).empty());
  CHECK_THAT(refused_scales({factors("a.scale_weight", {2})}), Contains("which is not there"));
  CHECK_THAT(refused_scales({weight("U8"), factors("a.scale_weight", {2})}),
             Contains("'a.weight', which is U8"));
  CHECK_THAT(refused_scales({right, factors("a.scale_weight", {1, 2, 3})}),
             Contains("has 3 factors of 2 rows"));
  CHECK_THAT(
      refused_scales({right, factors("a.scale_weight", {1}), factors("a.weight_scale", {1})}),
      Contains("factors twice"));
  CHECK_THAT(refused_scales({right, said(R"({"format":"nvfp4"})")}),
             Contains("'a' of") && Contains("of format 'nvfp4', which is not supported"));
}

TEST_CASE("wan files: ranks that load codes together have the numbers of one") {
  const std::vector<std::uint8_t> codes = [] {
    std::vector<std::uint8_t> all(6 * 64);
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<std::uint8_t>(i % 120);
    return all;
  }();
  class CodedSet final : public io::TensorSet {
   public:
    CodedSet(const std::vector<std::uint8_t>& codes, std::span<const float> scales) {
      const auto bytes = std::as_bytes(std::span(codes));
      add({"eight", "F8_E4M3", {6, 64}, bytes, scales});
      add({"blocks", "Q8_0", {5, 64}, bytes.first(10 * 34)});
    }
  };
  const std::vector<float> scales{1, 2, 3, 0.5F, 0.1F, 7};
  const CodedSet set(codes, scales);
  const auto everywhere = [&](const char* name, Shape shape) {
    const Tensor whole = read_floats(*set.find(name));
    for (const int ranks : {1, 2, 3})
      for (const int along : {0, 1})
        for (const std::int64_t piece : {28, 4096}) {
          std::atomic<int> right = 0;
          dist::thread_worlds(ranks, [&](dist::World& world) {
            const auto part = nn::cut_part(shape, {along, world.rank(), ranks});
            nn::Parameter parameters[2];
            for (nn::Parameter& p : parameters) {
              p.name = name;
              p.value = Tensor(part.shape);
              p.placement = part.placement;
            }
            std::vector<int> all(static_cast<std::size_t>(ranks));
            std::iota(all.begin(), all.end(), 0);
            class One final : public io::TensorSet {
             public:
              explicit One(const io::TensorView& tensor) { add(tensor); }
            };
            const One one(*set.find(name));
            const auto group = world.group("all", all);
            load_parameters(one, {&parameters[0]}, *group, piece);
            load_ranges(one, {range_target(parameters[1])});
            bool same = true;
            const Shape& at = part.placement.offset;
            for (std::int64_t i = 0; i < parameters[0].elements(); ++i) {
              const std::int64_t row = at[0] + i / part.shape[1],
                                 column = at[1] + i % part.shape[1];
              const float expected = whole.data<float>()[row * shape[1] + column];
              same = same &&
                     parameters[0].value.floats()[static_cast<std::size_t>(i)] == expected &&
                     parameters[1].value.floats()[static_cast<std::size_t>(i)] == expected;
            }
            if (same) ++right;
          });
          INFO(name << " " << ranks << " " << along << " " << piece);
          CHECK(right == ranks);
        }
  };
  everywhere("eight", {6, 64});
  everywhere("blocks", {5, 64});
}

TEST_CASE("wan files: text encoders in each form compute what transformers computes") {
  check_encoder(kWanFiles + "/comfy.safetensors", "comfy", 530);
  check_encoder(kWanFiles + "/authors.pth", "authors", 64);
  check_encoder(kWanFiles + "/llama.gguf", "llama", 530);
}

TEST_CASE("wan files: a text encoder's tokenizer is beside it or within its file") {
  for (const std::string name : {"comfy.safetensors", "llama.gguf"}) {
    INFO(name);
    const std::string file = kWanFiles + "/" + name;
    CHECK(text_encoder_folders(file).tokenizer == file);
    const text::EncoderConfig config = text_encoder_config(file, 64, DType::f32);
    CHECK(config.dim == 32);
    CHECK(config.name == "umt5");
    const auto encoder = make_text_encoder(config);
    const std::string_view texts[] = {"A red  car,\u3000driving", "caf\u00e9 \ufb01ne", ""};
    for (std::size_t i = 0; i < std::size(texts); ++i) {
      const io::TensorView& ids = *golden_numbers().find("ids." + std::to_string(i));
      std::vector<std::int32_t> expected(ids.data.size() / 4);
      std::memcpy(expected.data(), ids.data.data(), ids.data.size());
      const HfComponent component(file);
      const T5 model(T5Config::from_json(component.config(), component.type(), "it"),
                     component.weights(), DType::f32, Device::cpu);
      const std::vector<std::int64_t> lengths{std::ssize(expected)};
      const Tensor wanted = model.encode(expected, lengths);
      const text::TokenEmbeddings found = encoder->encode(texts[i]);
      CHECK(found.tokens == lengths[0]);
      CHECK(largest_difference(found.values, wanted.floats()) == 0);
    }
  }
  const TemporaryFolder folder;
  fs::copy_file(kWanFiles + "/authors.pth", folder / "umt5.pth");
  const std::string file = folder / "umt5.pth";
  CHECK_THAT(usage_error([&] { text_encoder_config(file, 64, DType::f32); }),
             Contains("has no tokenizer: put tokenizer.json or spiece.model beside it"));
  folder.write("google/umt5-xxl/spiece.model",
               io::read_file(std::string(VFM_GOLDEN) + "/t5/umt5/spiece.model"));
  CHECK(text_encoder_folders(file).tokenizer == folder / "google/umt5-xxl");
  CHECK(text_encoder_config(file, 64, DType::f32).path == fs::canonical(file).string());
  folder.write("spiece.model", "x");
  CHECK(text_encoder_folders(file).tokenizer == folder.path);
  CHECK(text_encoder_folders(folder.path).model == file);
}

TEST_CASE("wan files: a transformer in one file is what it is in a folder of diffusers") {
  const WanOfFiles wan;
  const TemporaryFolder folder;
  std::vector<std::vector<float>> plain, eight, blocks;
  const std::string prefix = "model.diffusion_model.";
  std::vector<FileTensor> scaled, gguf;
  for (const FileTensor& tensor : wan.tensors()) {
    const std::vector<float> values = WanOfFiles::floats_of(tensor);
    plain.push_back(values);
    eight.push_back(values);
    blocks.push_back(values);
    scaled.push_back(tensor);
    scaled.back().name = prefix + tensor.name;
    gguf.push_back(tensor);
    if (tensor.name.starts_with("blocks.") && tensor.shape.size() == 2) {
      const float scale = 0.01F;
      std::vector<std::uint8_t> codes;
      for (float& value : eight.back()) {
        codes.push_back(float_to_f8e4m3(value / scale));
        value = f8e4m3_to_float(codes.back()) * scale;
      }
      scaled.back() = file_tensor(prefix + tensor.name, "F8_E4M3", tensor.shape, codes);
      const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
      scaled.push_back(file_tensor<float>(prefix + module + ".scale_weight", "F32", {}, {scale}));
    }
    if (tensor.shape.size() == 2 && tensor.shape[1] % 32 == 0) {
      std::vector<std::byte> bytes;
      for (std::size_t begin = 0; begin < values.size(); begin += 32) {
        const std::uint16_t half = float_to_half(0.03F);
        bytes.resize(bytes.size() + 34);
        std::byte* const block = bytes.data() + bytes.size() - 34;
        std::memcpy(block, &half, 2);
        for (std::size_t i = 0; i < 32; ++i) {
          const auto code = static_cast<std::int8_t>(
              std::clamp(std::lround(values[begin + i] / 0.03F), -127L, 127L));
          block[2 + i] = static_cast<std::byte>(code);
          blocks.back()[begin + i] = half_to_float(half) * static_cast<float>(code);
        }
      }
      gguf.back() = {tensor.name, "Q8_0", tensor.shape, bytes};
    }
  }
  scaled.push_back(file_tensor<std::uint8_t>(prefix + "scaled_fp8", "F8_E4M3", {2}, {0, 0}));
  write_tensors(folder / "plain.safetensors", wan.tensors());
  write_tensors(folder / "scaled.safetensors", scaled);
  write_gguf(folder / "wan.gguf", "wan", gguf);
  wan.check_loaded(folder / "plain.safetensors", plain);
  wan.check_loaded(folder / "scaled.safetensors", eight);
  wan.check_loaded(folder / "wan.gguf", blocks);
  // Beside a configuration, as in a pipeline of diffusers.
  folder.write("transformer/config.json", dump_json(network_config_to_json(wan.config)));
  fs::copy_file(folder / "wan.gguf", folder / "transformer/wan.gguf");
  wan.check_loaded(folder / "transformer", blocks);
  const ModelFolder file(folder / "wan.gguf");
  CHECK_FALSE(file.is_pipeline());
  CHECK(file.type() == "WanTransformer3DModel");
  CHECK(file.hash() != ModelFolder(folder / "plain.safetensors").hash());
  // The factors are a part of what the model is.
  scaled[std::ranges::find_if(
             scaled, [](const FileTensor& one) { return one.name.ends_with(".scale_weight"); }) -
         scaled.begin()]
      .bytes[2] = std::byte{1};
  write_tensors(folder / "other.safetensors", scaled);
  CHECK(HfComponent(folder / "other.safetensors").hash() !=
        HfComponent(folder / "scaled.safetensors").hash());
}

TEST_CASE("wan files: files of the authors beside each other are a pipeline") {
  const WanOfFiles wan;
  const TemporaryFolder folder;
  folder.write("config.json", R"({"_class_name": "WanModel", "_diffusers_version": "0.30.0",
    "dim": 128, "eps": 1e-06, "ffn_dim": 32, "freq_dim": 8, "in_dim": 4, "model_type": "t2v",
    "num_heads": 1, "num_layers": 2, "out_dim": 4, "text_len": 512, "text_dim": 6})");
  write_tensors(folder / "diffusion_pytorch_model.safetensors", wan.tensors());
  std::vector<std::vector<float>> values;
  for (const FileTensor& tensor : wan.tensors())
    values.push_back(WanOfFiles::floats_of(tensor));
  wan.check_loaded(folder.path, values);
  CHECK_FALSE(ModelFolder(folder.path).is_pipeline());  // the transformer alone
  fs::copy_file(kWanFiles + "/authors.pth", folder / "models_t5_umt5-xxl-enc-bf16.pth");
  const ModelFolder model(folder.path);
  CHECK(model.is_pipeline());
  CHECK(model.layout().type() == "WanPipeline");
  CHECK(model.layout().has("transformer"));
  CHECK(model.layout().has("tokenizer"));
  CHECK_FALSE(model.layout().has("scheduler"));
  CHECK_FALSE(model.layout().has("vae"));
  CHECK(model.layout().folder_of("transformer") == folder.path);
  CHECK(model.part("text_encoder").type() == "umt5");
  CHECK(model.type() == "WanModel");
  const ModelFacts facts = read_facts(model, FactsFor::training);
  CHECK(facts.sampling.sampler == Sampler::unipc);
  CHECK(facts.sampling.process == Process::flow);
  CHECK(facts.sampling.shift == 8);  // of the 1.3B
  CHECK(facts.sampling.diffusers == InDiffusers{50, 4, 3});
  CHECK_FALSE(facts.tokenizer);
  REQUIRE(facts.text_encoder);
  CHECK(facts.text_encoder->path == folder / "models_t5_umt5-xxl-enc-bf16.pth");
  const std::string missing = usage_error([&] { model.layout().folder_of("vae"); });
  CHECK_THAT(missing, Contains("lacks the VAE (such as wan_2.1_vae.safetensors) of a Wan: put "));
  CHECK_THAT(missing, Contains("'models_t5_umt5-xxl-enc-bf16.pth' is the text encoder"));
  const Json wrong = parse_json(R"({"_class_name": "WanModel", "dim": 130, "num_heads": 4})", "");
  CHECK_THAT(usage_error([&] { network_config_from_json(wrong); }),
             Contains("a 'dim' of 130 is not made of 4 heads"));
}

TEST_CASE("wan files: three files beside each other are all that generation needs") {
  const WanOfFiles wan;
  const TemporaryFolder folder;
  write_tensors(folder / "wan.safetensors", wan.tensors("diffusion_model."));
  fs::copy_file(std::string(VFM_GOLDEN) + "/wan_vae/2.1/diffusion_pytorch_model.safetensors",
                folder / "vae.safetensors");
  fs::copy_file(kWanFiles + "/comfy.safetensors", folder / "umt5.safetensors");
  const ModelFolder model(folder.path);
  CHECK(model.type() == "WanTransformer3DModel");
  const ModelFacts facts = read_facts(model);
  REQUIRE((facts.tokenizer && facts.text_encoder));
  CHECK(facts.tokenizer->path == folder / "vae.safetensors");
  CHECK(inspect_tokenizer(*facts.tokenizer).family->name == "AutoencoderKLWan");
  CHECK(facts.usual.frames == 21);  // this VAE halves a side twice
  CHECK(facts.usual.height == 120);
  CHECK(facts.usual.width == 208);
  CHECK(make_text_encoder(*facts.text_encoder)->dim() == 32);
  CHECK(facts.text_encoder->clean);
  CHECK(text_encoder_config(folder.path, 512, DType::f32).clean);
  CHECK(text_encoder_config(folder / "umt5.safetensors", 512, DType::f32).clean);
  CHECK_FALSE(facts.boundary);
  CHECK(hash_all(model) != model.hash());
}

TEST_CASE("wan files: a file that is of another model, missing or there twice is told") {
  const WanOfFiles wan(36);
  const TemporaryFolder folder;
  write_tensors(folder / "wan.safetensors", wan.tensors());
  write_tensors(folder / "lora.safetensors", {file_tensor<float>("x", "F32", {1}, {1})});
  const auto layout = [&] { return std::make_unique<ModelFolder>(folder.path); };
  CHECK(layout()->layout().type() == "WanImageToVideoPipeline");
  CHECK_THAT(usage_error([&] { layout()->layout().folder_of("text_encoder"); }),
             Contains("lacks the text encoder (such as umt5_xxl_fp8_e4m3fn_scaled.safetensors) and "
                      "the VAE (such as wan_2.1_vae.safetensors) of a Wan") &&
                 Contains("'wan.safetensors' is the transformer, 'lora.safetensors' is no part"));
  CHECK_THAT(usage_error([&] { layout()->layout().folder_of("scheduler"); }),
             Contains("have no component 'scheduler'"));
  write_vae_names(folder / "vae.safetensors");
  CHECK(layout()->layout().folder_of("vae") == folder / "vae.safetensors");
  write_vae_names(folder / "vae2.safetensors");
  CHECK_THAT(usage_error(layout), Contains("has two files of the VAE of Wan, 'vae.safetensors'"));
  fs::remove(folder / "vae2.safetensors");
  write_tensors(folder / "wan2.safetensors", wan.tensors());
  CHECK_THAT(usage_error(layout), Contains("has two files of the transformer of Wan"));
  fs::rename(folder / "wan.safetensors", folder / "Wan2_2-A14B_HIGH_fp8.safetensors");
  fs::remove(folder / "wan2.safetensors");
  CHECK_THAT(usage_error([&] { layout()->layout().folder_of("transformer"); }),
             Contains("lacks the transformer for low noise (such as wan2.2_t2v_low_noise"));
  CHECK_THAT(usage_error([&] { layout()->layout().folder_of("text_encoder"); }),
             Contains("lacks the text encoder (such as umt5_xxl_fp8_e4m3fn_scaled.safetensors) and "
                      "the transformer for low noise (such as wan2.2_t2v_low_noise"));
  write_tensors(folder / "wan2.2_t2v_low_noise_14B.safetensors", wan.tensors());
  const auto both = layout();
  CHECK(both->layout().folder_of("transformer").ends_with("_HIGH_fp8.safetensors"));
  CHECK(both->layout().folder_of("transformer_2").ends_with("low_noise_14B.safetensors"));
  CHECK_FALSE(both->layout().flag("expand_timesteps"));
  CHECK(both->layout().boundary() == 0.9);
  CHECK(both->layout().networks() == std::vector<std::string>{"transformer", "transformer_2"});
  write_tensors(folder / "wan2.2_t2v_low_noise_14B.safetensors", WanOfFiles(16).tensors());
  CHECK_THAT(usage_error(layout), Contains("36 channels go into '") &&
                                      Contains("_HIGH_fp8.safetensors', and 16 into '") &&
                                      Contains("they are transformers of two models"));
  CHECK_THAT(usage_error([&] { HfComponent(folder / "lora.safetensors"); }),
             Contains("is of no model that works here by the names of its tensors"));
}

TEST_CASE("wan files: a transformer alone is told what has to stand beside it") {
  const TemporaryFolder folder;
  const std::string file = folder / "wan2.1_t2v_1.3B_bf16.safetensors";
  const auto refusal = [&](const WanOfFiles& wan) {
    write_tensors(file, wan.tensors());
    return usage_error([&] { read_facts(ModelFolder(file)); });
  };
  CHECK_THAT(refusal(WanOfFiles(16)),
             Contains("is a network alone, WanTransformer3DModel, without tokenizer and text "
                      "encoder: put the VAE (such as wan_2.1_vae.safetensors) and the text encoder "
                      "(such as umt5_xxl_fp8_e4m3fn_scaled.safetensors) beside it in one folder"));
  CHECK_THAT(refusal(WanOfFiles(48)), Contains("the VAE (such as wan2.2_vae.safetensors)"));
}

TEST_CASE("wan files: tensors that make no Wan are told by their names in the file") {
  const TemporaryFolder folder;
  const WanOfFiles wan;
  const auto refusal = [&](const std::string& name, const std::string& other,
                           const std::vector<std::int64_t>& shape) {
    std::vector<FileTensor> tensors = wan.tensors();
    const auto found = std::ranges::find(tensors, name, &FileTensor::name);
    REQUIRE(found != tensors.end());
    std::size_t values = 1;
    for (const std::int64_t size : shape)
      values *= static_cast<std::size_t>(size);
    *found = file_tensor(other, "F32", shape, std::vector<float>(values));
    write_tensors(folder / "wan.safetensors", tensors);
    return usage_error([&] { HfComponent(folder / "wan.safetensors"); });
  };
  const std::string patch = "patch_embedding.weight";
  CHECK_THAT(refusal(patch, "x", {1}), Contains("it has no 'patch_embedding.weight'"));
  CHECK_THAT(refusal(patch, patch, {128, 4}),
             Contains("'patch_embedding.weight' has no side 3, or an empty one"));
  CHECK_THAT(refusal("blocks.0.ffn.0.weight", "x", {1}), Contains("'blocks.0.ffn.0.weight'"));
  CHECK_THAT(refusal(patch, patch, {128, 4, 1, 65, 1}), Contains("a patch has a side of 65"));
  CHECK_THAT(refusal(patch, patch, {128, 4, 1, 3, 2}),
             Contains("an output of 16 values is not made of patches of 1x3x2"));
}

TEST_CASE("wan files: relatives of Wan are refused by their names") {
  const WanOfFiles wan(48);
  for (const auto& [tensor, name] : {std::pair{"img_emb.proj.1.weight", "Wan 2.1 I2V"},
                                     {"vace_patch_embedding.weight", "Wan VACE"},
                                     {"pose_patch_embedding.weight", "Wan 2.2 Animate"},
                                     {"casual_audio_encoder.weights", "Wan 2.2 S2V"},
                                     {"control_adapter.conv.weight", "Wan Fun with a camera"},
                                     {"ref_conv.weight", "Wan Fun Control"},
                                     {"audio_proj.audio_proj_glob_1.layer.bias", "HuMo"}}) {
    const TemporaryFolder folder;
    std::vector<FileTensor> tensors = wan.tensors();
    tensors.push_back(file_tensor<float>(tensor, "F32", {1}, {1}));
    if (name != std::string_view("Wan 2.1 I2V"))
      tensors.push_back(file_tensor<float>("img_emb.proj.1.weight", "F32", {1}, {1}));
    write_tensors(folder / "wan.safetensors", tensors);
    const ModelFolder model(folder.path);
    CHECK(model.layout().flag("expand_timesteps"));
    CHECK_THAT(usage_error([&] { model.component(); }), Contains(name));
  }
}
