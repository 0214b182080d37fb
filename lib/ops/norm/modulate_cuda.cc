// The CUDA versions of the kernels of modulate_kernels.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/modulate.h"
#include "kernels/modulate_backward.h"
#include "ops/norm/modulate_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops::cuda {
namespace {

static_assert(sizeof(RowRun) == sizeof(kernels::ModulateRun) &&
              offsetof(RowRun, row) == offsetof(kernels::ModulateRun, row));

kernels::ModulateBackward describe(const ModulateBackwardArgs& args) {
  const ModulateArgs& forward = args.forward;
  kernels::ModulateBackward call;
  call.width = static_cast<int>(forward.width);
  call.type = kernel_type(forward.type);
  call.centred = forward.centred;
  call.stream = forward.stream;
  call.moments = forward.moments;
  call.branch = forward.branch;
  call.gate = forward.gate;
  call.gate_stride = forward.gate_stride;
  call.modulation = forward.modulation;
  call.modulation_stride = forward.modulation_stride;
  call.dnormed = args.dnormed;
  call.dstream = args.dstream;
  call.dx = args.dx;
  call.dbranch = args.dbranch;
  call.runs = reinterpret_cast<const kernels::ModulateRun*>(args.runs);
  call.run_count = args.run_count;
  call.partial = args.partial;
  return call;
}

}  // namespace

void modulate_forward(const ModulateArgs& args) {
  kernels::ModulateForward call;
  call.tokens = args.tokens;
  call.width = static_cast<int>(args.width);
  call.type = kernel_type(args.type);
  call.epsilon = args.epsilon;
  call.centred = args.centred;
  call.x = args.x;
  call.branch = args.branch;
  call.gate = args.gate;
  call.gate_stride = args.gate_stride;
  call.extra = args.extra;
  call.modulation = args.modulation;
  call.modulation_stride = args.modulation_stride;
  call.rows = args.rows;
  if (args.stream != args.x) call.stream = args.stream;
  call.normed = args.normed;
  call.moments = args.moments;
  check_gpu(kernels::modulate_forward(call, compute_stream()), "run modulate");
}

void modulate_backward(const ModulateBackwardArgs& args) {
  check_gpu(kernels::modulate_backward(describe(args), compute_stream()), "run modulate backward");
}

void modulate_reduce(const ModulateBackwardArgs& args, std::int64_t rows, float* sums) {
  check_gpu(kernels::modulate_reduce(describe(args), rows, sums, compute_stream()),
            "add the sums of modulate");
}

}  // namespace vfm::ops::cuda
