// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv2d_cudnn_cuda.h"

#include <map>
#include <memory>

#include "base/log.h"
#include "ops/cudnn/cudnn_plan_cuda.h"

namespace vfm::ops {
namespace {

// Never destroyed: the driver may be gone before static objects are.
const CudnnPlan& plan_for(const ConvShape& shape) {
  static auto* const plans = new std::map<ConvShape, std::unique_ptr<CudnnPlan>>;
  std::unique_ptr<CudnnPlan>& plan = (*plans)[shape];
  if (!plan) {
    plan = std::make_unique<CudnnPlan>(conv_graph(shape));
    log_debug("cuDNN plan for a convolution {}: {} bytes of scratch", text_of(shape),
              plan->workspace());
  }
  return *plan;
}

const std::uint16_t* at(const void* data, std::int64_t element) {
  return static_cast<const std::uint16_t*>(data) + element;
}

}  // namespace

void conv2d_cudnn(const ConvCall& call) {
  const CudnnPlan& plan = plan_for(call.shape);
  const Tensor workspace({plan.workspace()}, DType::u8, Device::cuda);
  for (std::int64_t i = 0; i < call.images; ++i) {
    CudnnPlan::Memory memory{
        {kConvX, const_cast<std::uint16_t*>(at(call.x, i * call.x_step))},
        {kConvWeights, const_cast<void*>(call.weights)},
        {kConvY, const_cast<std::uint16_t*>(at(call.y, i * call.y_step))},
    };
    if (call.shape.bias) memory[kConvBias] = const_cast<float*>(call.bias);
    if (call.shape.residual)
      memory[kConvResidual] = const_cast<std::uint16_t*>(at(call.residual, i * call.y_step));
    plan.run(memory, workspace.raw());
  }
}

}  // namespace vfm::ops
