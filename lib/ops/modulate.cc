// SPDX-License-Identifier: Apache-2.0
#include "ops/modulate.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/modulate_cpu.h"

namespace vfm::ops {
namespace {

void check(const ModulateInput& in) {
  const Shape shape = in.x.shape();
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
  if (in.modulation.dims() != 2 || in.modulation.size(1) < 2 * width ||
      in.modulation.dtype() != DType::f32)
    fail("modulate: modulation {} is not [R, >= 2 * {}]", to_string(in.modulation.shape()), width);
  if (in.rows.dtype() != DType::i32 || in.rows.shape() != Shape{in.x.size(0)})
    fail("modulate: rows {} is not one i32 a token", to_string(in.rows.shape()));
  const auto* rows = in.rows.data<std::int32_t>();
  std::int64_t limit = in.modulation.size(0);
  if (in.gate.defined()) limit = std::min(limit, in.gate.size(0));
  for (std::int64_t i = 0; i < in.x.size(0); ++i)
    if (rows[i] < 0 || rows[i] >= limit)
      fail("modulate: token {} has row {} of {}", i, rows[i], limit);
}

ModulateArgs arguments(const ModulateInput& in, const Modulated& out, const Tensor& moments) {
  ModulateArgs args;
  args.tokens = in.x.size(0);
  args.width = in.x.size(1);
  args.low = in.out == DType::bf16;
  args.epsilon = in.epsilon;
  args.x = in.x.data<float>();
  if (in.branch.defined()) {
    args.branch = in.branch.raw();
    args.gate = in.gate.data<float>() + in.gate_column;
    args.gate_stride = in.gate.size(1);
  }
  if (in.extra.defined()) args.extra = in.extra.data<float>();
  args.modulation = in.modulation.data<float>();
  args.modulation_stride = in.modulation.size(1);
  args.rows = in.rows.data<std::int32_t>();
  args.stream = out.stream.data<float>();
  args.normed = out.normed.raw();
  args.moments = moments.data<float>();
  return args;
}

// Short enough that the threads share evenly, long enough that the partial sums are few.
std::vector<ModulateRun> runs_of(const Tensor& rows) {
  constexpr std::int64_t kLongest = 64;
  const auto* row = rows.data<std::int32_t>();
  std::vector<ModulateRun> runs;
  for (std::int64_t i = 0; i < rows.elements(); ++i) {
    if (runs.empty() || runs.back().row != row[i] || i - runs.back().begin >= kLongest)
      runs.push_back({i, i, row[i]});
    runs.back().end = i + 1;
  }
  return runs;
}

// Columns of the summed [R, 3 D] as the gradient of a [R, M] tensor whose other columns get zero.
Tensor spread(const Tensor& sums, std::int64_t from, std::int64_t count, const Tensor& like,
              std::int64_t to) {
  Tensor gradient = Tensor::zeros(like.shape());
  const std::int64_t rows = std::min(sums.size(0), like.size(0));
  for (std::int64_t r = 0; r < rows; ++r)
    std::memcpy(gradient.data<float>() + r * like.size(1) + to,
                sums.data<float>() + r * sums.size(1) + from,
                static_cast<std::size_t>(count) * sizeof(float));
  return gradient;
}

void backward(Tape& tape, const ModulateInput& in, const Modulated& out, const Tensor& moments) {
  const bool own_stream = out.stream.id() != in.x.id();
  Tensor dnormed = tape.take(out.normed);
  // When nothing is added the stream is x, whose gradient is not ours to take.
  Tensor dstream = own_stream ? tape.take(out.stream) : Tensor();
  if (!dnormed.defined()) dnormed = Tensor::zeros(out.normed.shape(), in.out);
  dnormed = dnormed.to(in.out);
  if (dstream.defined()) dstream = dstream.to(DType::f32);
  const std::int64_t width = in.x.size(1);
  const std::vector<ModulateRun> runs = runs_of(in.rows);
  const Tensor partial({static_cast<std::int64_t>(runs.size()), 3 * width});
  Tensor dx = dstream.defined() && dstream.unique() ? dstream : Tensor(in.x.shape());
  Tensor dbranch;
  ModulateBackwardArgs args;
  args.forward = arguments(in, out, moments);
  args.dnormed = dnormed.raw();
  if (dstream.defined()) args.dstream = dstream.data<float>();
  args.dx = dx.data<float>();
  if (in.branch.defined()) {
    dbranch = Tensor(in.branch.shape(), in.out);
    args.dbranch = dbranch.raw();
  }
  args.runs = runs.data();
  args.run_count = static_cast<std::int64_t>(runs.size());
  args.partial = partial.data<float>();
  VFM_CALL(modulate_backward, args);
  dstream = Tensor();  // dx must be unique again for whoever overwrites it next

  const std::int64_t rows =
      std::max(in.modulation.size(0), in.gate.defined() ? in.gate.size(0) : 0);
  Tensor sums = Tensor::zeros({rows, 3 * width});
  VFM_CALL(modulate_reduce, args, sums.data<float>());
  if (tape.wants_grad(in.modulation))
    tape.accumulate(in.modulation, spread(sums, 0, 2 * width, in.modulation, 0));
  if (in.branch.defined()) {
    if (tape.wants_grad(in.gate))
      tape.accumulate(in.gate, spread(sums, 2 * width, width, in.gate, in.gate_column));
    tape.accumulate(in.branch, std::move(dbranch));
  }
  if (in.extra.defined() && tape.wants_grad(in.extra)) tape.accumulate(in.extra, dx);
  tape.accumulate(in.x, std::move(dx));
}

}  // namespace

Modulated gated_residual_layernorm_modulate(Tape& tape, const ModulateInput& in) {
  check(in);
  const bool adds = in.branch.defined() || in.extra.defined();
  const Modulated out{adds ? Tensor(in.x.shape()) : in.x, Tensor(in.x.shape(), in.out)};
  const Tensor moments({in.x.size(0), 2});
  VFM_CALL(modulate_forward, arguments(in, out, moments));
  std::vector<Tensor> results{out.normed};
  if (adds) results.push_back(out.stream);
  tape.record(std::move(results), {in.x, in.branch, in.gate, in.extra, in.modulation},
              [in, out, moments](Tape& t) { backward(t, in, out, moments); });
  return out;
}

}  // namespace vfm::ops
