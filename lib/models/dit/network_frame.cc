// SPDX-License-Identifier: Apache-2.0
#include "models/dit/network_frame.h"

#include <map>
#include <string>

#include "base/error.h"
#include "models/dit/lora.h"
#include "ops/conv/patchify.h"
#include "ops/matmul/linear.h"

namespace vfm::models {

using nn::Init;

NetworkFrame::NetworkFrame(const NetworkConfig& c, std::uint64_t seed, DType compute_dtype,
                           Device where, bool trainable, bool tables, const NetworkLayout& ranks)
    : config(c), compute(compute_dtype), device(where), layout(ranks), make{weights, {}} {
  config.validate();
  layout.check(config);
  if (compute != DType::f32 && compute != DType::bf16)
    fail_usage("the model computes in f32 or bf16, not {}", dtype_name(compute));
  make.options.compute = compute;
  make.options.seed = seed;
  make.options.device = device;
  make.options.trainable = trainable;
  embed_ =
      &make.matrix({"patch_embed.proj.weight"}, c.width(), (c.in_channels + masks()) * patch());
  if (!tables) return;
  const std::array<const char*, 3> names = {"pos_emb_t", "pos_emb_h", "pos_emb_w"};
  for (std::size_t i = 0; i < 3; ++i)
    tables_[i] = &make.table(std::string("learnable_pos_embed.") + names[i],
                             {c.max_size[i] / c.patch_size[i], c.width()}, Init::normal);
}

std::int64_t NetworkFrame::patch() const {
  const auto& p = config.patch_size;
  return std::int64_t{p[0]} * p[1] * p[2];
}

void NetworkFrame::finish() {
  project_ = &make.matrix({"proj_out.weight"}, patch() * config.out_channels, config.width());
  for (nn::Weight& weight : weights)
    for (nn::Parameter& parameter : weight.parameters())
      parameters.push_back(&parameter);
}

void NetworkFrame::attach(const std::vector<AdapterShape>& shapes, bool trainable) {
  struct Place {
    nn::Weight* weight;
    std::size_t part;
  };
  std::map<std::string, Place> places;
  for (nn::Weight& weight : weights)
    for (std::size_t i = 0; i < weight.parameters().size(); ++i)
      places[weight.parameters()[i].name] = {&weight, i};
  WeightMaker maker{adapter_weights_, make.options};
  maker.options.trainable = trainable;
  for (const AdapterShape& shape : shapes) {
    const auto found = places.find(shape.module + ".weight");
    if (found == places.end()) fail_usage("the model has no matrix '{}' to adapt", shape.module);
    nn::Weight& weight = *found->second.weight;
    const std::size_t part = found->second.part;
    const Shape& matrix = weight.parameters()[part].shape();
    if (matrix.size() != 2) fail_usage("'{}' is no matrix: it takes no adapter", shape.module);
    nn::Weight& a = maker.make({shape.module + ".lora_A.weight"}, {shape.rank, matrix[1]},
                               Init::fan_in, weight.dtype(), true);
    nn::Weight& b = maker.make({shape.module + ".lora_B.weight"}, {matrix[0], shape.rank},
                               Init::zero, weight.dtype(), true);
    weight.attach(part, a, b, shape.scale);
    adapters.push_back(&a.parameters().front());
    adapters.push_back(&b.parameters().front());
  }
}

Tensor NetworkFrame::enter(ops::Tape& tape, const NetworkBatch& batch,
                           const NetworkPack& pack) const {
  for (const std::deque<nn::Weight>* all : {&weights, &adapter_weights_})
    for (const nn::Weight& weight : *all)
      weight.watch(tape);
  const Tensor patches = ops::patchify(tape, batch.latents.to(device), pack.patches,
                                       config.in_channels, masks(), config.patch_size, compute);
  const Tensor rows = own(tape, patches, pack);
  const auto embed = [this](ops::Tape& inner, const Tensor& x) {
    return std::vector{ops::linear(inner, x, embed_->matrix(inner), Tensor(), DType::f32)};
  };
  return kept_of_blocks().offload ? tape.checkpoint(rows, {}, embed)[0]
                                  : embed(tape, rows)[0];
}

Tensor NetworkFrame::positions(ops::Tape& tape, const NetworkPack& pack, bool unit) const {
  return own(tape,
             ops::learned_positions(tape, tables_[0]->op(tape), tables_[1]->op(tape),
                                    tables_[2]->op(tape), pack.grids, unit),
             pack);
}

Tensor NetworkFrame::own(ops::Tape& tape, const Tensor& of_all, const NetworkPack& pack) const {
  return pack.shard ? ops::take_ranges(tape, of_all, pack.shard->own) : of_all;
}

Tensor NetworkFrame::leave(ops::Tape& tape, const Tensor& normed, const NetworkPack& pack) const {
  Tensor tokens = ops::linear(tape, normed, project_->matrix(tape), Tensor(), DType::f32);
  if (pack.shard) tokens = ops::place_ranges(tape, tokens, pack.shard->own, pack.tokens);
  return ops::unpatchify(tape, tokens, pack.patches, config.out_channels, config.patch_size);
}

}  // namespace vfm::models
