// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/modulate.h"

#include <algorithm>

#include "base/error.h"
#include "ops/backward.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/norm/modulate_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void check(const ModulateInput& in, bool norms) {
  const Shape shape = in.x.shape();
  if (!norms && !in.branch.defined())
    fail("modulate: nothing to add to a stream {}", to_string(shape));
  if (in.x.dims() != 2 || in.x.dtype() != DType::f32)
    fail("modulate: the stream is {} {}", dtype_name(in.x.dtype()), to_string(shape));
  if (in.out != DType::f32 && in.out != DType::bf16)
    fail("modulate: no output in {}", dtype_name(in.out));
  const auto width = in.x.size(1);
  if (in.branch.defined() != in.gate.defined() ||
      (in.branch.defined() &&
       (in.branch.shape() != shape || in.branch.dtype() != in.out || in.gate.dims() != 2 ||
        in.gate.dtype() != DType::f32 || in.gate.size(1) < in.gate_column + width)))
    fail("modulate: branch and gate do not fit a stream {}", to_string(shape));
  if (in.extra.defined() && (in.extra.shape() != shape || in.extra.dtype() != DType::f32))
    fail("modulate: extra {} does not fit a stream {}", to_string(in.extra.shape()),
         to_string(shape));
  if (norms && (in.modulation.dims() != 2 || in.modulation_column < 0 ||
                in.modulation.size(1) < in.modulation_column + 2 * width ||
                in.modulation.dtype() != DType::f32))
    fail("modulate: modulation {} is not [R, >= {} + 2 * {}]", to_string(in.modulation.shape()),
         in.modulation_column, width);
  if (in.rows.tokens() != in.x.size(0) || in.rows.device() != in.x.device())
    fail("modulate: {} rows on {} for {} tokens on {}", in.rows.tokens(),
         device_name(in.rows.device()), in.x.size(0), device_name(in.x.device()));
  std::int64_t rows = norms ? in.modulation.size(0) : in.gate.size(0);
  if (in.gate.defined()) rows = std::min(rows, in.gate.size(0));
  if (in.rows.limit() > rows) fail("modulate: a token has row {} of {}", in.rows.limit() - 1, rows);
}

ModulateArgs arguments(const ModulateInput& in, const ModulateSaved& saved) {
  ModulateArgs args;
  args.tokens = in.x.size(0);
  args.width = in.x.size(1);
  args.type = in.out;
  args.epsilon = in.epsilon;
  args.centred = in.centred;
  args.x = in.x.data<float>();
  if (in.branch.defined()) {
    args.branch = in.branch.raw();
    args.gate = in.gate.data<float>() + in.gate_column;
    args.gate_stride = in.gate.size(1);
  }
  if (in.extra.defined()) args.extra = in.extra.data<float>();
  if (in.modulation.defined()) {
    args.modulation = in.modulation.data<float>() + in.modulation_column;
    args.modulation_stride = in.modulation.size(1);
  }
  args.rows = in.rows.rows();
  args.stream = saved.stream.data<float>();
  args.moments = saved.moments.data<float>();
  return args;
}

// Columns of the summed [R, 3 D] as the gradient of a [R, M] tensor whose other columns get zero.
Tensor spread(const Tensor& sums, std::int64_t from, std::int64_t count, const Tensor& like,
              std::int64_t to) {
  Tensor gradient = Tensor::zeros(like.shape(), DType::f32, like.device());
  copy_rows(gradient.data<float>() + to, static_cast<std::size_t>(like.size(1)) * sizeof(float),
            sums.data<float>() + from, static_cast<std::size_t>(sums.size(1)) * sizeof(float),
            static_cast<std::size_t>(count) * sizeof(float), std::min(sums.size(0), like.size(0)),
            like.device());
  return gradient;
}

// Whether the stream is a tensor of its own: when nothing is added it is x.
bool adds(const ModulateInput& in) {
  return in.branch.defined() || in.extra.defined();
}

ModulateSaved results_for(const ModulateInput& in) {
  const Device device = in.x.device();
  return {adds(in) ? Tensor(in.x.shape(), DType::f32, device) : in.x,
          Tensor({in.x.size(0), 2}, DType::f32, device)};
}

}  // namespace

ModulateSaved modulate_forward(const ModulateInput& in, Tensor& normed) {
  check(in, true);
  const std::int64_t width = in.x.size(1);
  normed = Tensor(in.x.shape(), in.out, in.x.device());
  const ModulateSaved saved = results_for(in);
  ModulateArgs args = arguments(in, saved);
  args.normed = normed.raw();
  VFM_RUN(
      Touching(in.x, in.branch, in.extra, adds(in) ? saved.stream : Tensor(), normed, saved.moments)
          .columns(in.gate, width)
          .columns(in.modulation, 2 * width),
      modulate_forward, args);
  return saved;
}

Tensor modulate_recompute(const ModulateInput& in, const ModulateSaved& saved) {
  ModulateInput plain;
  plain.x = saved.stream;
  plain.modulation = in.modulation;
  plain.modulation_column = in.modulation_column;
  plain.rows = in.rows;
  plain.epsilon = in.epsilon;
  plain.centred = in.centred;
  plain.out = in.out;
  Tensor normed;
  modulate_forward(plain, normed);
  return normed;
}

void modulate_backward(Tape& tape, const ModulateInput& in, const ModulateSaved& saved,
                       const Tensor& dnormed) {
  // When nothing is added the stream is x, whose gradient is not ours to take. It is added to where
  // it is, so that it has the same bits as that of a stream which a block before ends with.
  Tensor dstream = adds(in) ? tape.take(saved.stream) : Tensor();
  const Tape::Sum of_x = adds(in) ? Tape::Sum{} : tape.sum_of(in.x);
  if (of_x.add) dstream = of_x.tensor;
  const Device device = in.x.device();
  if (dstream.defined()) dstream = dstream.to(DType::f32);
  const std::int64_t width = in.x.size(1);
  const Tensor partial({in.rows.run_count(), 3 * width}, DType::f32, device);
  Tensor dx = of_x.tensor;
  if (!dx.defined())
    dx = dstream.defined() && dstream.unique() ? dstream : Tensor(in.x.shape(), DType::f32, device);
  Tensor dbranch;
  ModulateBackwardArgs args;
  args.forward = arguments(in, saved);
  args.dnormed = dnormed.raw();
  if (dstream.defined()) args.dstream = dstream.data<float>();
  args.dx = dx.data<float>();
  // What other sub-layers' streams passed on to `extra` is added to here.
  const bool passes = in.extra.defined() && tape.wants_grad(in.extra);
  const Tape::Sum sum = passes ? tape.sum_of(in.extra) : Tape::Sum{};
  const Tensor dextra = sum.add ? sum.tensor : Tensor();
  args.dextra = dextra.data<float>();
  if (in.branch.defined()) {
    dbranch = Tensor(in.branch.shape(), in.out, device);
    args.dbranch = dbranch.raw();
  }
  args.runs = in.rows.runs();
  args.run_count = in.rows.run_count();
  args.partial = partial.data<float>();
  const bool norms = dnormed.defined();
  VFM_RUN(Touching(device)
              .and_of(norms ? saved.stream : Tensor(), saved.moments, dnormed, dstream, in.branch,
                      dbranch, dx, dextra, dextra, partial)
              .columns(in.gate, width)
              .columns(norms ? in.modulation : Tensor(), width),  // shifts have no part in it
          modulate_backward, args);
  dstream = Tensor();  // dx must be unique for the op that overwrites it next

  const auto rows_of = [](const Tensor& table) { return table.defined() ? table.size(0) : 0; };
  const std::int64_t rows = std::max(rows_of(in.modulation), rows_of(in.gate));
  const Tensor sums = Tensor::zeros({rows, 3 * width}, DType::f32, device);
  VFM_RUN(Touching(partial, sums), modulate_reduce, args, rows, sums.data<float>());
  if (tape.wants_grad(in.modulation))
    tape.accumulate(in.modulation, spread(sums, 0, 2 * width, in.modulation, in.modulation_column));
  if (in.branch.defined()) {
    if (tape.wants_grad(in.gate))
      tape.accumulate(in.gate, spread(sums, 2 * width, width, in.gate, in.gate_column));
    tape.accumulate(in.branch, std::move(dbranch));
  }
  if (sum.tensor.defined() && !sum.add) copy(dx, sum.tensor);
  if (passes && !sum.tensor.defined()) tape.accumulate(in.extra, dx);
  if (!of_x.tensor.defined()) tape.accumulate(in.x, std::move(dx));
}

Modulated gated_residual_layernorm_modulate(Tape& tape, const ModulateInput& in) {
  Tensor normed;
  const ModulateSaved saved = modulate_forward(in, normed);
  std::vector<Tensor> results{normed};
  if (adds(in)) results.push_back(saved.stream);
  tape.record(std::move(results), {in.x, in.branch, in.gate, in.extra, in.modulation},
              [in, saved, normed](Tape& t) {
                const Tensor dnormed = t.take(normed);
                modulate_backward(t, in, saved, dnormed.defined() ? dnormed.to(in.out) : dnormed);
              });
  return {saved.stream, normed};
}

ModulatedFp8 gated_residual_layernorm_modulate_fp8(const Tape& tape, const ModulateInput& in) {
  if (tape.recording()) fail("modulate to FP8 has no gradient: it is for inference");
  check(in, true);
  const Device device = in.x.device();
  const std::int64_t tokens = in.x.size(0), width = in.x.size(1);
  const ModulateSaved saved = results_for(in);
  const Quantized normed{Tensor(in.x.shape(), DType::f8e4m3, device),
                         Tensor({1}, DType::f32, device)};
  // The second pass reads the stream, its moments and the modulation once more.
  VFM_RUN(Touching(in.x, in.branch, in.extra, adds(in) ? saved.stream : Tensor(), saved.stream,
                   saved.moments, saved.moments, normed.values)
              .columns(in.gate, width)
              .columns(in.modulation, 2 * width)
              .columns(in.modulation, 2 * width)
              .cpu_scratch([&] {
                return in.x.elements() * static_cast<std::int64_t>(dtype_size(in.out)) /
                       static_cast<std::int64_t>(sizeof(float));
              })
              .gpu_scratch([&] { return tokens * sizeof(std::int32_t); }),
          modulate_fp8, arguments(in, saved), normed);
  return {saved.stream, normed};
}

Tensor gated_residual(Tape& tape, const ModulateInput& given) {
  ModulateInput in = given;
  in.modulation = Tensor();
  check(in, false);
  const Tensor stream(in.x.shape(), DType::f32, in.x.device());
  const ModulateSaved saved{stream, Tensor()};
  VFM_RUN(Touching(in.x, in.branch, in.extra, stream).columns(in.gate, in.x.size(1)),
          modulate_forward, arguments(in, saved));
  tape.record(stream, {in.x, in.branch, in.gate, in.extra},
              [in, saved](Tape& t) { modulate_backward(t, in, saved, Tensor()); });
  return stream;
}

// The two steps, one after the other.
void cpu::modulate_fp8(const ModulateArgs& args, const Quantized& normed) {
  const Tensor between(normed.values.shape(), args.type);
  ModulateArgs both = args;
  both.normed = between.raw();
  modulate_forward(both);
  quantize(between, normed);
}

}  // namespace vfm::ops
