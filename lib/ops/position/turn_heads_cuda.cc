// SPDX-License-Identifier: Apache-2.0
#include "kernels/text_rows.h"
#include "ops/position/turn_heads_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {

void cuda::turn_heads(const TurnHeadsArgs& args) {
  check_gpu(kernels::turn_heads(args.x, args.rows, args.width, args.heads, args.half, args.cosines,
                                args.sines, compute_stream()),
            "turn heads");
}

}  // namespace vfm::ops
