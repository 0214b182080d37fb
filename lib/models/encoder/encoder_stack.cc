// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/encoder_stack.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/stop.h"
#include "io/lazy_map.h"
#include "models/config_limits.h"
#include "nn/mlp.h"
#include "ops/attention/attention.h"
#include "ops/matmul/linear.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/modulate.h"
#include "ops/pointwise/add.h"
#include "ops/position/turn_heads.h"
#include "tensor/device.h"
#include "tensor/meta.h"

namespace vfm::models {
namespace {

bool is_scale(EncoderPart part) {
  return part == EncoderPart::scale1 || part == EncoderPart::scale2;
}

/// The parts of a layer, and the shape of each one's weight.
std::vector<std::pair<EncoderPart, Shape>> parts_of(const EncoderStackConfig& c) {
  using enum EncoderPart;
  const std::int64_t d = c.width, f = c.feed_forward;
  std::vector<std::pair<EncoderPart, Shape>> parts{{query, {d, d}}, {key, {d, d}}, {value, {d, d}},
                                                   {out, {d, d}},   {norm1, {d}},  {norm2, {d}},
                                                   {up, {f, d}},    {down, {d, f}}};
  if (c.layer_scale) parts.insert(parts.end(), {{scale1, {d}}, {scale2, {d}}});
  return parts;
}

/// One layer's weights, as they are used.
struct LayerWeights {
  const EncoderNames& names;
  const io::TensorSet& set;
  int layer;
  DType compute;
  Device device;

  Tensor get(EncoderPart part, const char* suffix, DType dtype) const {
    return use_weight(*set.find(names(layer, part) + suffix), dtype, device);
  }
  Tensor matrix(EncoderPart part) const { return get(part, ".weight", compute); }
  Tensor vector(EncoderPart part, const char* suffix = ".bias") const {
    return get(part, suffix, DType::f32);
  }
  /// Those of queries, keys and values below each other, for one product.
  Tensor joined(const char* suffix, DType dtype) const {
    Tensor all;
    std::int64_t row = 0;
    for (const EncoderPart part : {EncoderPart::query, EncoderPart::key, EncoderPart::value}) {
      const Tensor one = get(part, suffix, dtype);
      if (!all.defined()) {
        Shape shape = one.shape();
        shape[0] *= 3;
        all = Tensor(std::move(shape), dtype, device);
      }
      copy(one, all.rows(row, row + one.size(0)));
      row += one.size(0);
    }
    return all;
  }
};

/// What goes through a layer's products at once.
struct EncoderRun {
  ops::Tape& tape;
  ops::AttentionPack attention;
  ops::RowMap rows;  // all row 0, for the scales
  Tensor x;          // [S, D] f32

  EncoderRun(ops::Tape& inference, const EncoderStackConfig& c, const Tensor& tokens,
             std::span<const std::int64_t> lengths, Device device)
      : tape(inference), x(tokens.clone()) {  // layers add to it
    attention.query_lengths.assign(lengths.begin(), lengths.end());
    attention.key_lengths = attention.query_lengths;
    attention.heads = attention.key_heads = c.heads;
    attention.head_dim = c.width / c.heads;
    attention.causal = c.causal;
    ops::prepare(attention, device);
    if (c.layer_scale)
      rows = ops::RowMap(std::vector<std::int32_t>(static_cast<std::size_t>(x.size(0))), device);
  }
  Tensor normed(const EncoderStackConfig& c, const LayerWeights& w, EncoderPart part) {
    return ops::layer_norm(tape, x, w.vector(part, ".weight"), w.vector(part), c.epsilon);
  }
  /// Turns the queries and keys in rows [S, 3 D] of queries, keys and values.
  void turn(const EncoderStackConfig& c, const Tensor& qkv) const {
    std::int64_t row = 0;
    for (const std::int64_t length : attention.query_lengths) {
      ops::turn_neighbours(qkv.rows(row, row + length), 2 * c.heads, c.turns.cosines,
                           c.turns.sines);
      row += length;
    }
  }
  /// x += scale * branch, or + branch alone.
  void add(const EncoderStackConfig& c, const LayerWeights& w, EncoderPart scale,
           const Tensor& branch) {
    if (!c.layer_scale) {
      ops::add_in_place(x, branch);
      return;
    }
    ops::ModulateInput input;
    input.x = x;
    input.branch = branch;
    input.gate = w.vector(scale, "").reshape({1, c.width});
    input.rows = rows;
    x = ops::gated_residual(tape, input);
  }
};

// Of a layer, a matrix is read, and converted where it is stored otherwise, once for all runs.

void attend_layer(std::span<EncoderRun> runs, const EncoderStackConfig& c, const LayerWeights& w) {
  const Tensor in = w.joined(".weight", w.compute), in_bias = w.joined(".bias", DType::f32);
  const Tensor out = w.matrix(EncoderPart::out), out_bias = w.vector(EncoderPart::out);
  for (EncoderRun& run : runs) {
    const Tensor n = c.norm_first ? run.normed(c, w, EncoderPart::norm1) : run.x;
    const bool turned = c.turns.cosines.defined();
    Tensor qkv =
        ops::linear(run.tape, n.to(w.compute), in, in_bias, turned ? DType::f32 : w.compute);
    if (turned) run.turn(c, qkv);
    qkv = qkv.to(w.compute);
    const Tensor a = ops::self_attention(run.tape, qkv, run.attention);
    run.add(c, w, EncoderPart::scale1, ops::linear(run.tape, a, out, out_bias, DType::f32));
    if (!c.norm_first) run.x = run.normed(c, w, EncoderPart::norm1);
  }
}

void feed_layer(std::span<EncoderRun> runs, const EncoderStackConfig& c, const LayerWeights& w) {
  const Tensor up = w.matrix(EncoderPart::up), up_bias = w.vector(EncoderPart::up);
  const Tensor down = w.matrix(EncoderPart::down), down_bias = w.vector(EncoderPart::down);
  for (EncoderRun& run : runs) {
    const Tensor n = (c.norm_first ? run.normed(c, w, EncoderPart::norm2) : run.x).to(w.compute);
    const auto feed = [&](const Tensor& rows) {
      const Tensor inner = ops::linear(run.tape, rows, up, up_bias, w.compute);
      ops::activate_in_place(run.tape, inner, c.activation);
      return ops::linear(run.tape, inner, down, down_bias, DType::f32);
    };
    run.add(c, w, EncoderPart::scale2, nn::feed_by_rows(n, c.feed_forward, feed));
    if (!c.norm_first) run.x = run.normed(c, w, EncoderPart::norm2);
  }
}

}  // namespace

void EncoderStackConfig::check(const std::string& what) const {
  const auto positive = [&](const char* name, int value, int most) {
    if (value < 1 || value > most)
      fail_usage("{}: {} is {}, must be 1 to {}", what, name, value, most);
  };
  positive("its width", width, kMostWidth);
  positive("its number of heads", heads, kMostWidth);
  positive("its feed-forward width", feed_forward, kMostWidth);
  positive("its number of layers", layers, kMostLayers);
  if (width % heads != 0)
    fail_usage("{}: a width of {} is not a multiple of {} heads", what, width, heads);
  if (!(epsilon > 0)) fail_usage("{}: its layer norms' epsilon is {}", what, epsilon);
}

EncoderStack::EncoderStack(const EncoderStackConfig& config, EncoderNames names,
                           const io::TensorSet& weights, DType compute, Device device)
    : config_(config),
      names_(std::move(names)),
      weights_(weights),
      compute_(compute),
      device_(device) {}

std::vector<TensorTarget> EncoderStack::tensors(const EncoderStackConfig& config,
                                                const EncoderNames& names) {
  std::vector<TensorTarget> targets;
  for (int layer = 0; layer < config.layers; ++layer)
    for (const auto& [part, shape] : parts_of(config)) {
      const std::string name = names(layer, part);
      targets.push_back({name + (is_scale(part) ? "" : ".weight"), shape, {}});
      if (!is_scale(part)) targets.push_back({name + ".bias", {shape[0]}, {}});
    }
  return targets;
}

Tensor EncoderStack::forward(const Tensor& x, std::span<const std::int64_t> lengths,
                             bool apart) const {
  if (x.dims() != 2 || x.size(1) != config_.width || x.dtype() != DType::f32 ||
      std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) != x.size(0) ||
      std::any_of(lengths.begin(), lengths.end(), [](auto n) { return n < 1; }))
    fail("an encoder of width {}: {} {} does not fit {} samples", config_.width,
         dtype_name(x.dtype()), to_string(x.shape()), lengths.size());
  if (x.size(0) == 0) return x;
  ops::Tape tape(false);
  std::vector<EncoderRun> runs;
  const std::size_t each = apart ? 1 : lengths.size();
  std::int64_t row = 0;
  for (std::size_t i = 0; i < lengths.size(); i += each) {
    const auto own = lengths.subspan(i, each);
    const std::int64_t end = std::accumulate(own.begin(), own.end(), row);
    runs.emplace_back(tape, config_, x.rows(row, end), own, device_);
    row = end;
  }
  for (int layer = 0; layer < config_.layers; ++layer) {
    check_stop();
    const LayerWeights weights{names_, weights_, layer, compute_, device_};
    attend_layer(runs, config_, weights);
    feed_layer(runs, config_, weights);
  }
  if (runs.size() == 1) return runs.front().x;
  const Tensor all(x.shape(), DType::f32, device_);
  for (std::int64_t begin = 0; const EncoderRun& run : runs) {
    copy(run.x, all.rows(begin, begin + run.x.size(0)));
    begin += run.x.size(0);
  }
  return all;
}

Tensor use_weight(const io::TensorView& view, DType dtype, Device device) {
  if (is_coded(view))
    return device == Device::meta ? Tensor(view.shape, dtype, device)
                                  : read_floats(view).to(dtype).to(device);
  const DType stored = float_type(view.dtype);
  if (device != Device::meta) io::need_bytes(view.data);
  // As it lies on disk where that is what is asked for; data of other programs may begin anywhere.
  const bool aligned = reinterpret_cast<std::uintptr_t>(view.data.data()) % 4 == 0;
  if (device == Device::meta && layout_device(device) == Device::cuda)  // goes there at each use
    return Tensor::borrow(view.data.data(), view.shape, dtype, nullptr).to(device);
  if (device == Device::meta && stored != dtype) return Tensor(view.shape, dtype, device);
  Tensor tensor = Tensor::borrow(view.data.data(), view.shape, stored, nullptr,
                                 device == Device::meta ? device : Device::cpu);
  if (!aligned) {
    const Tensor copied(view.shape, stored);
    std::memcpy(copied.raw(), view.data.data(), view.data.size());
    tensor = copied;
  }
  return tensor.to(dtype).to(device);
}

}  // namespace vfm::models
