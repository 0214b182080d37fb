// The settings and tensors of a published autoregressive model: {"settings": {...}, "tensors":
// {NAME: [SIZES]}}. Whatever passes is a configuration, or is refused as one, and its tensors lie
// in theirs.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "base/error.h"
#include "fuzz.h"
#include "models/decoder/decoder_json.h"
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
  "model.layers.0.cross_attention.wk.weight":[12,5],"tok_embeddings.weight":[]}})",
      R"({"tensors":{"tok_embeddings.weight":[16,4],"output.weight":[16,4],
  "layers.0.self_attention.layernorm_qkv.query_weight":[24,4],
  "layers.0.self_attention.layernorm_qkv.key_weight":[24,4],"layers.0.self_attention.q_norm.weight":[12],
  "layers.0.layernorm_mlp.fc1_weight":[13,4],"layers.99999999999999999999.x":[0],"layers.":[1],
  "layers.0.self_attention._extra_state":[1]}})"};
}
