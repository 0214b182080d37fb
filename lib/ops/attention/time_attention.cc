// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/time_attention.h"

#include <omp.h>

#include <cmath>

#include "base/error.h"
#include "ops/attention/video_attention_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
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
