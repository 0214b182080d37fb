// SPDX-License-Identifier: Apache-2.0
#include "models/dit/fp8.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "models/dit/architecture.h"
#include "ops/attention/attention_fp8.h"
#include "ops/matmul/linear_fp8.h"

namespace vfm::models {
namespace {

// Switches FP8 off, whatever happens.
struct OffAtEnd {
  const std::function<void(Fp8Parts)>& switch_to;
  ~OffAtEnd() { switch_to({}); }
};

}  // namespace

Fp8Parts parse_fp8(std::string_view name) {
  if (name == "off") return {};
  if (name == "linear") return {.linear = true};
  if (name == "all") return {.linear = true, .attention = true};
  fail_usage("unknown FP8 '{}': choose linear or all", name);
}

std::string_view fp8_name(Fp8Parts parts) {
  if (parts.linear) return parts.attention ? "all" : "linear";
  return parts.attention ? "attention" : "off";
}

Fp8Parts running_in_fp8(Fp8Parts parts, Device device, bool say) {
  const std::string why = parts.attention ? ops::why_no_fp8_attention(device) : "";
  if (why.empty()) return parts;
  if (say) log_warning("attention stays in bf16: in FP8 it is cuDNN's, and {}", why);
  parts.attention = false;
  return parts;
}

void check_fp8(const NetworkConfig& c, DType compute, Fp8Parts parts) {
  const auto need = [](const std::string& why) {
    if (!why.empty()) fail_usage("this model cannot run in FP8: {}", why);
  };
  if (parts.any() && !c.architecture->fp8)
    fail_usage("--fp8 is for models of type {}, and this one is {}", names_of(&Architecture::fp8),
               c.architecture->name);
  const std::int64_t width = c.width(), hidden = c.hidden();
  if (parts.linear)
    for (const Shape& matrix :
         {Shape{width, width}, Shape{2 * width, c.text_width()}, Shape{hidden, width}})
      need(ops::why_no_fp8_product(matrix));
  if (!parts.attention) return;
  need(ops::why_no_fp8_attention(c.attention_head_dim));
  if (compute != DType::bf16) fail_usage("--fp8 all is for models that compute in bf16");
}

double fp8_error(const std::function<void(Fp8Parts)>& switch_to,
                 const std::function<Tensor()>& output, Fp8Parts parts) {
  switch_to({});
  const Tensor without = output();
  const OffAtEnd off{switch_to};
  switch_to(parts);
  return output_change(without, output());
}

double output_change(const Tensor& without, const Tensor& with) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < without.floats().size(); ++i) {
    const double v = without.floats()[i], d = with.floats()[i] - v;
    difference += d * d;
    size += v * v;
  }
  if (difference == 0) return 0;
  return size == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(difference / size);
}

}  // namespace vfm::models
