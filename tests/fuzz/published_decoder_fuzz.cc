// The settings and tensors of NVIDIA's own checkpoints: {"settings": {...}, "tensors": {NAME:
// [SIZES]}}. Of autoregressive models whatever passes is a configuration, or is refused as one, and
// its tensors lie in theirs; so is what the names and shapes of other networks say.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "base/error.h"
#include "base/json.h"
#include "fuzz.h"
#include "models/cosmos/config_json.h"
#include "models/decoder/decoder_json.h"
#include "models/dit/network_json.h"
#include "models/folder/published_config.h"
#include "models/folder/published_decoder.h"

namespace {

using namespace vfm;

constexpr std::int64_t kMostElements = 1 << 16;

/// Tensors of zeros.
class ZeroSet final : public io::TensorSet {
 public:
  explicit ZeroSet(const Json& shapes) : TensorSet("input"), zeros_(kMostElements * 4) {
    for (const auto& [name, sizes] : shapes.items()) {
      io::TensorView view{name, "F32", {}, {}};
      std::int64_t elements = 1;
      for (const Json& size : sizes) {
        const std::int64_t n = size.is_number_integer() ? size.get<std::int64_t>() : 0;
        if (n < 0 || n > kMostElements / elements) return;
        view.shape.push_back(n);
        if (n > 0) elements *= n;
      }
      view.data = std::span(zeros_).first(view.bytes());
      add(std::move(view));
    }
  }
  bool holds(const io::TensorView& view) const {
    return view.data.size() == view.bytes() && view.data.data() >= zeros_.data() &&
           view.data.data() + view.data.size() <= zeros_.data() + zeros_.size();
  }

 private:
  std::vector<std::byte> zeros_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Json input = parse_json({reinterpret_cast<const char*>(data), size}, "input");
    if (!input.is_object()) return 0;
    const Json settings = input.value("settings", Json::object()),
               shapes = input.value("tensors", Json::object());
    if (!settings.is_object() || !shapes.is_object()) return 0;
    const ZeroSet set(shapes);
    if (const Json said = models::published_config(set); !said.is_null()) {
      if (said["_class_name"] == "CosmosTransformer3DModel")
        models::network_config_from_json(said);
      else
        models::cosmos_config_from_json(said, "input");
      return 0;
    }
    if (!models::may_be_published_decoder(settings) || !models::is_published_decoder(set)) return 0;
    const Json config = models::published_decoder_config(set, settings);
    for (const io::TensorView& view : models::published_decoder_tensors(set, config))
      if (!set.holds(view)) std::abort();
    models::decoder_config_from_json(config);
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      R"({"settings":{"n_layers":1,"norm_eps":1e-5,"apply_yarn":true,"original_latent_shape":[3,4,5]},
  "tensors":{"model.tok_embeddings.weight":[80,4],"model.output.weight":[16,4],
  "model.layers.0.attention.wq.weight":[24,4],"model.layers.0.attention.wk.weight":[12,4],
  "model.layers.0.attention.q_norm.weight":[12],"model.layers.0.feed_forward.w1.weight":[6,4],
  "model.layers.0.cross_attention.wk.weight":[12,5],"model.norm.weight":[]}})",
      R"({"tensors":{"tok_embeddings.weight":[16,4],"output.weight":[16,4],
  "layers.0.self_attention.layernorm_qkv.query_weight":[24,4],
  "layers.0.self_attention.layernorm_qkv.key_weight":[24,4],"layers.0.self_attention.q_norm.weight":[12],
  "layers.0.layernorm_mlp.fc1_weight":[13,4],"layers.99999999999999999999.x":[0],"layers.":[1],
  "layers.0.self_attention._extra_state":[1]}})",
      R"({"tensors":{"net.x_embedder.proj.1.weight":[32,20],"net.final_layer.linear.weight":[16,32],
  "net.blocks.block0.blocks.0.block.attn.to_q.1.weight":[16],
  "net.blocks.block0.blocks.0.adaLN_modulation.1.weight":[4,32],
  "net.blocks.block0.blocks.1.block.attn.to_k.0.weight":[32,8],
  "net.blocks.block0.blocks.2.block.layer1.weight":[64,32],
  "net.extra_pos_embedder.pos_emb_t":[4,32],"net.extra_pos_embedder.pos_emb_h":[6,32],
  "net.extra_pos_embedder.pos_emb_w":[6,32]}})",
      R"({"tensors":{"encoder.conv_in.0.conv3d.weight":[8,24,1,3,3],"quant_conv.conv3d.weight":[4,4,1,1,1],
  "encoder.down.0.block.0.conv1.0.conv3d.weight":[8,8,1,3,3],
  "encoder.down.0.downsample.conv1.conv3d.weight":[8,8,1,3,3],
  "decoder.conv_in.0.conv3d.weight":[8,4,1,3,3],"decoder.up.0.block.0.conv1.0.conv3d.weight":[8,8,1,3,3]}})"};
}
