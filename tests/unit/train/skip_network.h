// A network with skip connections, as a value of an Architecture that only tests have: blocks of
// the first half hand on their results, and blocks of the second half take them, the last one
// first, with one more pair of matrices.
//
//   a block:  x += A x + B skip                second half; A and B are [D, D]
//             x += positions,  x += W2 SiLU(W1 x)
//
// A recipe of 'model.type' dit gets it by `recipe.model.dit.architecture = &kSkips`.
// Shape letters: S tokens of the pack, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "models/config_limits.h"
#include "models/dit/architecture.h"
#include "models/dit/framed_forward.h"
#include "nn/linear.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"
#include "ops/pointwise/cast.h"

namespace vfm {

class SkipBlock {
 public:
  SkipBlock(nn::WeightMaker& make, const std::string& name, const models::NetworkConfig& c, int i)
      : compute_(make.options.compute),
        takes_(models::skips_of(c, i) < 0),
        x_(takes_ ? &make.stacked({{name + "join.x.weight", c.width()}}, c.width()) : nullptr),
        skip_(takes_ ? &make.stacked({{name + "join.skip.weight", c.width()}}, c.width())
                     : nullptr),
        up_(make.stacked({{name + "up.weight", c.hidden()}}, c.width())),
        down_(make.stacked({{name + "down.weight", c.width()}}, c.hidden())) {}

  nn::Stream forward(ops::Tape& tape, nn::Stream s, const models::BlockContext& context) const {
    if (takes_) {
      const Tensor both =
          ops::add(tape, product(tape, *x_, s.x), product(tape, *skip_, s.more.back()));
      s.x = ops::add(tape, s.x, both);
      s.more.pop_back();
    }
    s.x = ops::add(tape, s.x, context.positions);
    s.x = ops::add(tape, s.x, product(tape, down_, ops::silu(tape, product(tape, up_, s.x))));
    if (!takes_) s.more.push_back(s.x);
    return s;
  }

 private:
  Tensor product(ops::Tape& tape, const nn::Weight& matrix, const Tensor& x) const {
    return nn::Linear(matrix, DType::f32).forward(tape, ops::cast(tape, x, compute_));
  }

  DType compute_;
  bool takes_;  // in the second half
  const nn::Weight *x_, *skip_, &up_, &down_;
};

struct SkipFrame : models::NetworkFrame {
  SkipFrame(const models::NetworkConfig& c, std::uint64_t seed, DType type, Device where,
            bool trainable, const nn::NetworkLayout& ranks)
      : NetworkFrame(c, seed, type, where, trainable, ranks) {
    make_blocks(blocks);
    finish({nn::Modulation::of_table(make, "norm_out.table", c.width(), 2), type, {}});
  }

  using Block = SkipBlock;
  using Context = models::BlockContext;
  Context context(ops::Tape& tape, const models::NetworkPack& pack, const Tensor& text) const {
    Context made = NetworkFrame::context(tape, pack, text);
    made.positions = positions(tape, pack, false);
    made.conditions.shared =
        Tensor::zeros({pack.times.elements(), 2 * config.width()}, DType::f32, device);
    return made;
  }
  std::deque<SkipBlock> blocks;
};

inline constexpr std::string_view kSkipTargets[] = {"up", "down"};

inline const models::Architecture kSkips = {
    .name = "dit",
    .class_name = "SkipTransformer3DModel",
    .lora_targets = kSkipTargets,
    .visit = models::visit_common,
    .check =
        [](const models::NetworkConfig& c) {
          models::need_field(c.num_layers % 2 == 0, "num_layers", c.num_layers, "even");
        },
    .hidden = [](const models::NetworkConfig& c) { return std::int64_t{2} * c.width(); },
    .skips = [](const models::NetworkConfig& c,
                int block) { return 2 * block < c.num_layers ? 1 : -1; },
    .has_tables = [](const models::NetworkConfig&) { return true; },
    .shared_values = [](const models::NetworkConfig&) { return std::int64_t{0}; },
    .tp_products = [](const models::NetworkConfig&) { return std::vector<models::TpProduct>(); },
    .make = [](const models::NetworkConfig& c, std::uint64_t seed, DType compute, Device device,
               bool trainable,
               const nn::NetworkLayout& layout) -> std::unique_ptr<models::DiffusionNetwork> {
      return std::make_unique<models::NetworkOf<SkipFrame>>(c, seed, compute, device, trainable,
                                                            layout);
    },
};

}  // namespace vfm
