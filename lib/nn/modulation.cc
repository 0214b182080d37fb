// SPDX-License-Identifier: Apache-2.0
#include "nn/modulation.h"

#include <vector>

#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"
#include "ops/pointwise/embedding.h"

namespace vfm::nn {
namespace {

Linear conditioning(WeightMaker& make, const std::string& name, std::int64_t rows,
                    std::int64_t columns, Init init, bool bias = false) {
  Weight& matrix = make.conditioning(name + ".weight", rows, columns, init);
  return bias ? Linear(make, matrix) : Linear(matrix);
}

}  // namespace

Modulation::Modulation(WeightMaker& make, const std::string& name, std::int64_t width, int parts)
    : up_(conditioning(make, name, parts * width, width, Init::zero)) {}

Modulation::Modulation(WeightMaker& make, const std::string& down, const std::string& up,
                       std::int64_t width, int parts, int rank)
    : down_(conditioning(make, down, rank, width, Init::xavier)),
      up_(conditioning(make, up, parts * width, rank, Init::zero)) {}

Modulation Modulation::of_table(WeightMaker& make, const std::string& name, std::int64_t width,
                                int parts) {
  return Modulation(make.table(name, {1, parts, width}, Init::normal));
}

Tensor Modulation::forward(ops::Tape& tape, const Conditions& c) const {
  if (table_ != nullptr) {
    const Tensor& table = table_->op(tape);
    const std::vector<std::int32_t> first_row(static_cast<std::size_t>(c.shared.size(0)), 0);
    return ops::add(tape, ops::embedding(tape, table.reshape({1, table.elements()}), first_row),
                    c.shared);
  }
  const Tensor low = down_ ? down_->forward(tape, c.embedding) : c.embedding;
  const Tensor made = up_->forward(tape, low);
  return c.shared.defined() ? ops::add(tape, made, c.shared) : made;
}

TimeEmbedding::TimeEmbedding(WeightMaker& make, const std::string& name, std::int64_t width,
                             std::int64_t outputs, const TimeEmbeddingOptions& options)
    : first_(conditioning(make, name + ".linear_1", width, options.wave.value_or(width),
                          Init::normal, options.bias)),
      second_(conditioning(make, name + ".linear_2", outputs, width, Init::normal, options.bias)) {}

Tensor TimeEmbedding::forward(ops::Tape& tape, const Tensor& wave) const {
  return second_.forward(tape, ops::silu(tape, first_.forward(tape, wave)));
}

}  // namespace vfm::nn
