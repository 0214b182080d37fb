// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <vector>

#include "kernels/attention_fp8.h"
#include "kernels/head_codes.h"
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

namespace {

/// What a launch needs; it must last until then.
struct HeadCall {
  HeadCall(const HeadLayout& layout, std::int64_t heads) {
    std::vector<std::int32_t> rows;  // as kernels::HeadRows has them
    std::int64_t first = 0;
    for (std::size_t sample = 0; sample < layout.lengths.size(); ++sample) {
      const std::int64_t end = first + layout.lengths[sample];
      for (; first < end; first += kernels::kHeadRows) {
        rows.push_back(static_cast<std::int32_t>(sample));
        rows.push_back(static_cast<std::int32_t>(first));
        rows.push_back(
            static_cast<std::int32_t>(std::min<std::int64_t>(kernels::kHeadRows, end - first)));
      }
      first = end;
    }
    static_assert(sizeof(kernels::HeadRows) == 3 * sizeof(std::int32_t));
    if (!rows.empty())
      items =
          Tensor::borrow(rows.data(), {static_cast<std::int64_t>(rows.size())}, DType::i32, nullptr)
              .to(Device::cuda);
    call.items = rows.empty() ? nullptr : static_cast<const kernels::HeadRows*>(items.raw());
    call.item_count = static_cast<std::int64_t>(rows.size() / 3);
    call.heads = static_cast<int>(heads);
    call.head_dim = layout.head_dim;
    call.samples = static_cast<std::int64_t>(layout.lengths.size());
  }

  Tensor items;
  kernels::HeadCodes call;
};

}  // namespace

void cuda::largest_of_heads(const Tensor& x, const HeadLayout& layout, const Tensor& largest) {
  const HeadCall heads(layout, largest.size(1));
  check_fp8_gpu(kernels::largest_of_heads(heads.call, x.raw(), largest.data<std::uint32_t>(),
                                          compute_stream()),
                "find the largest magnitudes of heads");
}

void cuda::largest_of_parts(const Tensor& largest, const Tensor& all) {
  check_fp8_gpu(kernels::largest_of_parts(
                    largest.data<std::uint32_t>(), static_cast<int>(largest.size(0) / all.size(0)),
                    all.elements(), all.data<std::uint32_t>(), compute_stream()),
                "find the largest magnitudes of parts");
}

void cuda::quantize_heads(const Tensor& x, const HeadLayout& layout, const Tensor& largest,
                          const Tensor& codes) {
  HeadCall heads(layout, largest.size(1));
  heads.call.largest = largest.data<std::uint32_t>();
  check_fp8_gpu(
      kernels::quantize_heads(heads.call, x.raw(), codes.data<std::uint8_t>(), compute_stream()),
      "round heads to FP8");
}

void cuda::restore_heads(const Tensor& codes, const HeadLayout& layout, const Tensor& largest,
                         const Tensor& x) {
  HeadCall heads(layout, largest.size(1));
  heads.call.largest = largest.data<std::uint32_t>();
  check_fp8_gpu(
      kernels::restore_heads(heads.call, codes.data<std::uint8_t>(), x.raw(), compute_stream()),
      "restore heads from FP8");
}

}  // namespace vfm::ops
