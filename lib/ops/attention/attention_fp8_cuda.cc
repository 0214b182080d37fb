// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention_fp8.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_cuda.h"
#include "ops/attention/attention_fp8_kernels.h"
#include "ops/matmul/check_fp8_cuda.h"
#include "tensor/device.h"

namespace vfm::ops {

void cuda::attention_fp8_forward(const AttentionArgs& args, const AttentionPack& pack) {
  const auto work = pack.work ? pack.work : attention_work(pack);
  kernels::AttentionFp8 call;
  call.call = describe_attention(args, *work);
  call.keys = args.key_starts[args.samples];
  call.samples = args.samples;
  call.largest = args.largest;
  const Tensor room({kernels::attention_fp8_room(call)}, DType::u8, Device::cuda);
  call.room = room.raw();
  check_fp8_gpu(kernels::attention_fp8_forward(call, compute_stream()), "run attention in FP8");
}

}  // namespace vfm::ops
