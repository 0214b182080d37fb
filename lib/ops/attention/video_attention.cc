// Shape letters: T frames, N pixels of the queries, M of the keys, C channels, R rows of a block.
// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/video_attention.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/attention/video_attention_kernels.h"
#include "ops/matmul/gemm.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

// f32 scores that exist at one time: what stays in a CPU's cache, and what keeps a GPU busy.
constexpr std::int64_t kScores = std::int64_t{1} << 22, kScoresGpu = std::int64_t{1} << 25;

struct Sizes {
  Device device = Device::cpu;
  DType dtype = DType::f32;
  std::int64_t frames = 0, n = 0, m = 0, channels = 0;
  std::int64_t block = 0;  // rows whose scores exist at one time
  float scale = 0;
};

Sizes sizes_of(const Tensor& q, const Tensor& k, const Tensor& v) {
  const bool fits = q.dims() >= 2 && k.shape() == v.shape() && k.dims() >= 2 &&
                    q.size(0) == k.size(0) && q.size(-1) == k.size(-1) && q.elements() > 0 &&
                    k.elements() > 0 && q.dtype() == k.dtype() && q.dtype() == v.dtype() &&
                    q.device() == k.device() && q.device() == v.device();
  if (!fits)
    fail("frame_attention: q {}, k {} and v {} do not fit each other", vfm::to_string(q.shape()),
         vfm::to_string(k.shape()), vfm::to_string(v.shape()));
  Sizes s;
  s.device = q.device(), s.dtype = q.dtype();
  s.frames = q.size(0), s.channels = q.size(-1);
  s.n = q.elements() / s.frames / s.channels, s.m = k.elements() / s.frames / s.channels;
  const bool gpu = layout_device(s.device) == Device::cuda;
  s.block = std::clamp<std::int64_t>((gpu ? kScoresGpu : kScores) / s.m, 1, s.n);
  s.scale = 1.f / std::sqrt(static_cast<float>(s.channels));
  return s;
}

// Some rows of one frame.
struct Block {
  std::int64_t rows = 0;
  Matrix q, k, v;                   // [R, C], [M, C], [M, C]
  std::int64_t q_at = 0, k_at = 0;  // offsets of the first elements
};

const void* offset(const Tensor& t, std::int64_t elements) {
  return static_cast<const std::byte*>(t.raw()) +
         static_cast<std::size_t>(elements) * dtype_size(t.dtype());
}

template <class Body>
void for_each_block(const Sizes& s, const Tensor& q, const Tensor& k, const Tensor& v, Body body) {
  for (std::int64_t t = 0; t < s.frames; ++t)
    for (std::int64_t first = 0; first < s.n; first += s.block) {
      Block b;
      b.rows = std::min(s.block, s.n - first);
      b.q_at = (t * s.n + first) * s.channels, b.k_at = t * s.m * s.channels;
      b.q = {offset(q, b.q_at), s.dtype, s.channels, false};
      b.k = {offset(k, b.k_at), s.dtype, s.channels, false};
      b.v = {offset(v, b.k_at), s.dtype, s.channels, false};
      body(b);
    }
}

Matrix transposed(Matrix matrix) {
  matrix.transposed = true;
  return matrix;
}

// The probabilities of a block, in s.dtype; `scores` is room.
void probabilities(const Sizes& s, const Block& b, const Tensor& scores, const Tensor& p) {
  gemm(s.device, b.rows, s.m, s.channels, b.q, transposed(b.k), scores.raw(), DType::f32, s.m,
       false);
  VFM_RUN(Touching(scores, p), softmax_rows, scores.data<float>(), s.dtype, p.raw(), b.rows, s.m,
          s.scale);
}

void backward(Tape& tape, const Sizes& s, const Tensor& q, const Tensor& k, const Tensor& v,
              const Tensor& given) {
  const Tensor dout = given.to(s.dtype);
  const Tensor dq(q.shape(), s.dtype, s.device);
  const Tensor dk = Tensor::zeros(k.shape(), DType::f32, s.device);
  const Tensor dv = Tensor::zeros(v.shape(), DType::f32, s.device);
  const Tensor scores({s.block, s.m}, DType::f32, s.device), p({s.block, s.m}, s.dtype, s.device),
      ds({s.block, s.m}, s.dtype, s.device);
  const Matrix p_matrix{p.raw(), s.dtype, s.m, false}, ds_matrix{ds.raw(), s.dtype, s.m, false};
  for_each_block(s, q, k, v, [&](const Block& b) {
    probabilities(s, b, scores, p);
    const Matrix dout_matrix{offset(dout, b.q_at), s.dtype, s.channels, false};
    gemm(s.device, s.m, s.channels, b.rows, transposed(p_matrix), dout_matrix,
         dv.data<float>() + b.k_at, DType::f32, s.channels, true);
    gemm(s.device, b.rows, s.m, s.channels, dout_matrix, transposed(b.v), scores.raw(), DType::f32,
         s.m, false);
    VFM_RUN(Touching(p, scores, ds), softmax_rows_backward, s.dtype, p.raw(), scores.data<float>(),
            ds.raw(), b.rows, s.m, s.scale);
    gemm(s.device, b.rows, s.channels, s.m, ds_matrix, b.k, const_cast<void*>(offset(dq, b.q_at)),
         s.dtype, s.channels, false);
    gemm(s.device, s.m, s.channels, b.rows, transposed(ds_matrix), b.q, dk.data<float>() + b.k_at,
         DType::f32, s.channels, true);
  });
  tape.accumulate(q, dq);
  tape.accumulate(k, dk.to(s.dtype));
  tape.accumulate(v, dv.to(s.dtype));
}

// Works on the blocks of the whole picture of which the part has some. A block that it has only
// some rows of gets others, with any values: products of as many rows add in the same order.
Tensor attend_from_part(const Tensor& q, const Tensor& k, const Tensor& v, const FramePart& part) {
  Sizes s = sizes_of(q, k, v);
  s.block = std::clamp<std::int64_t>(kScores / s.m, 1, part.whole);
  if (part.first < 0 || part.first + s.n > part.whole)
    fail("frame_attention: {} pixels from {} on are not a part of {}", s.n, part.first, part.whole);
  const Tensor out(q.shape(), s.dtype, s.device);
  const Tensor scores({s.block, s.m}, DType::f32, s.device);
  const Tensor p = s.dtype == DType::f32 ? scores : Tensor({s.block, s.m}, s.dtype, s.device);
  const Tensor wide_q = Tensor::zeros({s.block, s.channels}, s.dtype, s.device);
  const Tensor wide_out({s.block, s.channels}, s.dtype, s.device);
  const Shape lines{s.frames * s.n, s.channels};
  const Tensor from = q.reshape(lines), to = out.reshape(lines);
  for (std::int64_t t = 0; t < s.frames; ++t)
    for (std::int64_t at = part.first / s.block * s.block; at < part.first + s.n; at += s.block) {
      Block b;
      b.rows = std::min(s.block, part.whole - at);
      const std::int64_t begin = std::max(at, part.first),
                         end = std::min(at + b.rows, part.first + s.n);
      const std::int64_t line = t * s.n + begin - part.first, count = end - begin;
      const Tensor own = from.rows(line, line + count), made = to.rows(line, line + count);
      const bool all = count == b.rows;
      if (!all) copy(own, wide_q.rows(begin - at, end - at));
      b.k_at = t * s.m * s.channels;
      b.q = {all ? own.raw() : wide_q.raw(), s.dtype, s.channels, false};
      b.k = {offset(k, b.k_at), s.dtype, s.channels, false};
      b.v = {offset(v, b.k_at), s.dtype, s.channels, false};
      probabilities(s, b, scores, p);
      gemm(s.device, b.rows, s.channels, s.m, {p.raw(), s.dtype, s.m, false}, b.v,
           all ? made.raw() : wide_out.raw(), s.dtype, s.channels, false);
      if (!all) copy(wide_out.rows(begin - at, end - at), made);
    }
  return out;
}

}  // namespace

Tensor frame_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v,
                       const FramePart& part) {
  if (part.whole > 0 && tape.recording()) fail("frame_attention: no gradients of a part");
  if (part.whole > 0 && layout_device(q.device()) == Device::cpu)
    return attend_from_part(q, k, v, part);
  const Sizes s = sizes_of(q, k, v);
  const Tensor out(q.shape(), s.dtype, s.device);
  const Tensor scores({s.block, s.m}, DType::f32, s.device);
  // In f32 the probabilities take the place of the scores.
  const Tensor p = s.dtype == DType::f32 ? scores : Tensor({s.block, s.m}, s.dtype, s.device);
  for_each_block(s, q, k, v, [&](const Block& b) {
    probabilities(s, b, scores, p);
    gemm(s.device, b.rows, s.channels, s.m, {p.raw(), s.dtype, s.m, false}, b.v,
         const_cast<void*>(offset(out, b.q_at)), s.dtype, s.channels, false);
  });
  tape.record(out, {q, k, v}, [=](Tape& t) { backward(t, s, q, k, v, t.take(out)); });
  return out;
}

namespace {

// Where each frame of the pieces begins.
std::vector<const void*> frames_of(const std::vector<Tensor>& pieces, const Tensor& q) {
  std::vector<const void*> frames;
  for (const Tensor& piece : pieces) {
    const bool fits = piece.dims() == q.dims() && piece.dtype() == q.dtype() &&
                      piece.device() == q.device() && piece.size(0) > 0 &&
                      piece.elements() / piece.size(0) == q.elements() / q.size(0) &&
                      piece.size(-1) == q.size(-1);
    if (!fits)
      fail("time_attention: keys {} do not fit queries {}", to_string(piece.shape()),
           to_string(q.shape()));
    for (std::int64_t t = 0; t < piece.size(0); ++t)
      frames.push_back(piece.rows(t, t + 1).raw());
  }
  return frames;
}

// `touching`, but for keys and values, and `products` of queries' and keys' width; the scores that
// backward computes again are not counted.
Touching work_of(const TimeAttentionArgs& a, const Touching& touching, int products) {
  const auto queries = static_cast<double>(a.queries), frames = static_cast<double>(a.frames);
  const double pairs = queries * (frames - (queries - 1) / 2) * static_cast<double>(a.pixels);
  // Keys and values, frame by frame.
  Touching all = touching.kind(WorkKind::attention, a.type);
  all.work.bytes += 2 * frames * static_cast<double>(a.pixels * a.channels) *
                    static_cast<double>(dtype_size(a.type));
  return all.products(pairs, products, static_cast<double>(a.channels));
}

// The CPU's: the GPU's version makes its own.
Tensor scratch_of(TimeAttentionArgs& args, Device device, bool backward) {
  if (layout_device(device) != Device::cpu) return {};
  args.scratch_stride = time_attention_scratch(args, backward);
  Tensor scratch({omp_get_max_threads(), args.scratch_stride}, DType::f32, device);
  args.scratch = scratch.data<float>();
  return scratch;
}

}  // namespace

Tensor time_attention(Tape& tape, const Tensor& q, const TimeKeys& pieces) {
  if (q.dims() < 2 || q.elements() == 0 || pieces.keys.size() != pieces.values.size() ||
      (q.dtype() != DType::f32 && q.dtype() != DType::bf16))
    fail("time_attention of {} {}", dtype_name(q.dtype()), to_string(q.shape()));
  const std::vector<const void*> keys = frames_of(pieces.keys, q);
  const std::vector<const void*> values = frames_of(pieces.values, q);
  TimeAttentionArgs args;
  args.type = q.dtype();
  args.queries = q.size(0), args.frames = static_cast<std::int64_t>(keys.size());
  args.channels = q.size(-1), args.pixels = q.elements() / args.queries / args.channels;
  args.scale = 1.f / std::sqrt(static_cast<float>(args.channels));
  if (args.frames < args.queries || keys.size() != values.size())
    fail("time_attention: {} frames of queries, {} of keys, {} of values", args.queries,
         keys.size(), values.size());
  const Tensor out(q.shape(), q.dtype(), q.device());
  const Tensor scratch = scratch_of(args, q.device(), false);
  args.q = q.raw(), args.keys = keys.data(), args.values = values.data();
  args.out = out.raw();
  VFM_RUN(work_of(args, Touching(q, out), 2), time_attention_forward, args);
  std::vector<Tensor> inputs{q};
  inputs.insert(inputs.end(), pieces.keys.begin(), pieces.keys.end());
  inputs.insert(inputs.end(), pieces.values.begin(), pieces.values.end());
  bool wanted = false;
  for (const Tensor& input : inputs)
    wanted = wanted || tape.wants_grad(input);
  if (!wanted) return out;
  if (pieces.keys.size() != 1 || args.frames != args.queries)
    fail("time_attention: no gradient for keys in pieces");
  tape.record(out, inputs, [=](Tape& t) {
    const Tensor dout = t.take(out).to(q.dtype());
    const Tensor &k = inputs[1], &v = inputs[2];
    const Tensor dq(q.shape(), q.dtype(), q.device()), dk(k.shape(), k.dtype(), k.device()),
        dv(v.shape(), v.dtype(), v.device());
    TimeAttentionArgs back = args;
    const std::vector<const void*> key_frames = frames_of({k}, q), value_frames = frames_of({v}, q);
    back.keys = key_frames.data(), back.values = value_frames.data();
    const Tensor room = scratch_of(back, q.device(), true);
    back.dout = dout.raw(), back.dq = dq.raw(), back.dk = dk.raw(), back.dv = dv.raw();
    const auto weights = [&] {  // bytes
      return 4 * 2 * time_attention_pixels_at_once(back) * back.queries * back.queries;
    };
    VFM_RUN(work_of(args, Touching(q, dout, dq, dk, dv), 4).gpu_scratch(weights),
            time_attention_backward, back);
    t.accumulate(q, dq);
    t.accumulate(k, dk);
    t.accumulate(v, dv);
  });
  return out;
}

}  // namespace vfm::ops
