// SPDX-License-Identifier: Apache-2.0
#include "train/state/adamw_rules.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "models/folder/load_tensors.h"
#include "ops/optim/adamw.h"
#include "ops/optim/block_codes.h"

namespace vfm::train {

using ops::PartOfWhole;

namespace {

Device device_of_kept(std::span<const KeptParameter> parameters) {
  return parameters.front().parameter->device();
}

std::vector<ops::AdamwSlot> adamw_slots(const OptimizerRecipe& recipe,
                                        std::span<const KeptParameter> parameters) {
  std::vector<ops::AdamwSlot> slots;
  for (const KeptParameter& kept : parameters) {
    ops::AdamwSlot& slot = slots.emplace_back(nn::adamw_slot(*kept.parameter));
    slot.first_moment = kept.state[0].raw();
    slot.second_moment = kept.state[1].raw();
    slot.moments = kept.state[0].dtype();
    slot.ema = kept.average.defined() ? kept.average.data<float>() : nullptr;
    slot.weight_decay = kept.parameter->decay ? static_cast<float>(recipe.weight_decay) : 0.0f;
  }
  return slots;
}

ops::AdamwStep adamw_step(const OptimizerRecipe& recipe, const UpdateStep& step) {
  ops::AdamwStep own;
  own.learning_rate = static_cast<float>(step.learning_rate);
  own.beta1 = static_cast<float>(recipe.beta1);
  own.beta2 = static_cast<float>(recipe.beta2);
  own.epsilon = static_cast<float>(recipe.eps);
  own.ema_decay = step.average_decay;
  own.step = step.number;
  return own;
}

/// The size of the first moment, or of the second, after gradients of that root mean square.
double usual_moment(const OptimizerRecipe& recipe, double size, std::size_t moment) {
  return moment == 0 ? size * (1 - recipe.beta1) : size * size * (1 - recipe.beta2);
}

std::pair<Tensor, Tensor> drawn_moments(const OptimizerRecipe& recipe, double size,
                                        const UpdateRule::Draw& draw) {
  const double first = usual_moment(recipe, size, 0), second = usual_moment(recipe, size, 1);
  const Tensor m = draw(" m"), v = draw(" v");
  for (float& number : m.floats())
    number = static_cast<float>(first * number);
  for (float& number : v.floats())
    number = static_cast<float>(second * (0.5 + number * number));
  return {m, v};
}

/// ops/optim/adamw.h, with moments of one type for all parameters.
class AdamwRule final : public UpdateRule {
 public:
  bool takes(const OptimizerRecipe& /*recipe*/, const nn::Parameter& /*parameter*/) const override {
    return true;
  }

  std::vector<StateTensor> state(const OptimizerRecipe& recipe) const override {
    return {{"adam_m", recipe.moment_type()}, {"adam_v", recipe.moment_type()}};
  }

  void update(const OptimizerRecipe& recipe, const UpdateStep& step,
              std::span<const KeptParameter> parameters,
              const StateParts* /*parts*/) const override {
    ops::AdamwStep own = adamw_step(recipe, step);
    own.gradient_scale = static_cast<float>(step.factor);
    ops::adamw(device_of_kept(parameters), adamw_slots(recipe, parameters), own);
  }

  // On a GPU the norm and what it clips are found without the host.
  std::optional<double> clipped_update(const OptimizerRecipe& recipe, const UpdateStep& step,
                                       std::span<const KeptParameter> parameters) const override {
    return ops::clipped_adamw(device_of_kept(parameters), adamw_slots(recipe, parameters),
                              adamw_step(recipe, step), step.factor, recipe.clip);
  }

  void draw_state(const OptimizerRecipe& recipe, const KeptParameter& kept, double size,
                  const Draw& draw) const override {
    const auto [m, v] = drawn_moments(recipe, size, draw);
    for (const auto& [from, to] : {std::pair(m, kept.state[0]), std::pair(v, kept.state[1])})
      copy(from.to(to.dtype()).to(to.device()), to);
  }
};

/// Elements of whole parameters whose moments are decoded at a time, unless one has more.
constexpr std::int64_t kDecodedAtOnce = std::int64_t{64} << 20;

PartOfWhole part_of_whole(const nn::Parameter& parameter) {
  const io::TensorRange box = models::held_range(parameter);
  if (box.elements() == 0) return {};
  PartOfWhole part{.count = parameter.elements(), .begin = parameter.placement.begin};
  std::size_t dim = box.shape.size();
  part.length = part.stride = 1;
  while (dim > 0 && box.length[dim - 1] == box.shape[dim - 1]) {
    part.length *= box.shape[--dim];
    part.stride = part.length;
  }
  if (dim > 0) {
    --dim;
    part.first = box.offset[dim] * part.stride;
    part.length *= box.length[dim];
    part.stride *= box.shape[dim];
    for (std::size_t outer = 0; outer < dim; ++outer)
      if (box.length[outer] != box.shape[outer]) fail("'{}' is cut along two dims", parameter.name);
  }
  part.whole = element_count(parameter.placement.global);
  return part;
}

class BlockAdamwRule final : public UpdateRule {
 public:
  bool takes(const OptimizerRecipe& recipe, const nn::Parameter& parameter) const override {
    return recipe.moments == "8bit" && parameter.decay && parameter.placement.global.size() > 1;
  }

  std::vector<StateTensor> state(const OptimizerRecipe& /*recipe*/) const override {
    return {{"adam_m_codes", DType::u8},
            {"adam_v_codes", DType::u8},
            {"adam_m_scales", DType::f32, ops::kCodeBlock},
            {"adam_v_scales", DType::f32, ops::kCodeBlock}};
  }

  bool looks_beyond() const override { return true; }

  void update(const OptimizerRecipe& recipe, const UpdateStep& step,
              std::span<const KeptParameter> parameters, const StateParts* parts) const override {
    for (std::size_t begin = 0; begin < parameters.size();) {
      std::size_t end = begin;
      for (std::int64_t elements = 0; end < parameters.size(); ++end) {
        elements += element_count(parameters[end].parameter->placement.global);
        if (end > begin && elements > kDecodedAtOnce) break;
      }
      update_some(recipe, step, parameters.subspan(begin, end - begin), begin, *parts);
      begin = end;
    }
  }

  void draw_state(const OptimizerRecipe& recipe, const KeptParameter& kept, double size,
                  const Draw& draw) const override {
    const auto [m, v] = drawn_moments(recipe, size, draw);
    const PartOfWhole part = part_of_whole(*kept.parameter);
    for (std::size_t i = 0; i < 2; ++i) {
      const Tensor& numbers = i == 0 ? m : v;
      // One scale for all blocks, so that no rank need ask another for it.
      const auto most = static_cast<float>(4 * usual_moment(recipe, size, i));
      for (float& number : numbers.floats())
        number = std::clamp(number, -most, most);
      const Tensor scales(kept.state[2 + i].shape()), codes(numbers.shape(), DType::u8);
      std::ranges::fill(scales.floats(), most);
      ops::encode_blocks(numbers, scales, kRanges[i], part, codes);
      copy(codes, kept.state[i]);
      copy(scales, kept.state[2 + i]);
    }
  }

 private:
  static constexpr ops::CodeRange kRanges[] = {ops::CodeRange::signed_unit, ops::CodeRange::unit};

  /// `first` is the number of the first one for `all`.
  static void update_some(const OptimizerRecipe& recipe, const UpdateStep& step,
                          std::span<const KeptParameter> parameters, std::size_t first,
                          const StateParts& all) {
    const Device device = device_of_kept(parameters);
    std::vector<KeptParameter> decoded;
    std::vector<StateParts::Numbered> scales;  // of first and second moments by turns
    for (const KeptParameter& kept : parameters) {
      const PartOfWhole part = part_of_whole(*kept.parameter);
      decoded.push_back({kept.parameter, {}, kept.average});
      KeptParameter& own = decoded.back();
      for (std::size_t i = 0; i < 2; ++i) {
        own.state.emplace_back(Shape{part.count}, DType::f32, device);
        ops::decode_blocks(kept.state[i], kept.state[2 + i], kRanges[i], part, own.state[i]);
      }
    }
    ops::AdamwStep own_step = adamw_step(recipe, step);
    own_step.gradient_scale = static_cast<float>(step.factor);
    ops::adamw(device, adamw_slots(recipe, decoded), own_step);
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const PartOfWhole part = part_of_whole(*parameters[k].parameter);
      for (std::size_t i = 0; i < 2; ++i) {
        scales.push_back(
            {first + k, Tensor::zeros(parameters[k].state[2 + i].shape(), DType::f32, device)});
        ops::scales_of_blocks(decoded[k].state[i], part, scales.back().values);
      }
    }
    all.greatest(scales);
    for (std::size_t k = 0; k < parameters.size(); ++k)
      for (std::size_t i = 0; i < 2; ++i) {
        const KeptParameter& kept = parameters[k];
        const Tensor& of_blocks = scales[2 * k + i].values;
        ops::encode_blocks(decoded[k].state[i], of_blocks, kRanges[i],
                           part_of_whole(*kept.parameter), kept.state[i]);
        copy(of_blocks, kept.state[2 + i]);
      }
  }
};

}  // namespace

const UpdateRule& adamw_rule() {
  static const AdamwRule rule;
  return rule;
}

const UpdateRule& block_adamw_rule() {
  static const BlockAdamwRule rule;
  return rule;
}

}  // namespace vfm::train
