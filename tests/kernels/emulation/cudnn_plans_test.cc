// Engines of cuDNN for the graphs of attention and convolutions, on a machine without a GPU: cuDNN
// chooses an engine for the H200 (or B200) that is described to it, makes its kernels, and tells
// what scratch they need. Only the driver is emulated (driver.cc), so nothing runs.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "driver.h"
#include "ops/attention/attention_fp8_graph.h"
#include "ops/attention/attention_graph.h"
#include "ops/attention/attention_shape.h"
#include "ops/conv/conv_graph.h"
#include "ops/cudnn/cudnn_plan_cuda.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

// What the CUDA runtime says of one.
constexpr const char* kH200 = R"({
  "deviceName": "NVIDIA H200", "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000,
  "totalGlobalMem": 150754820096, "multiProcessorCount": 132, "warpSize": 32,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
  "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
  "l2CacheSize": 62914560, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000,
  "supportCoopLaunch": 1, "isTccDriver": 0, "pciDeviceId": 0})";

// A B200 differs in these, as far as engines ask.
std::string b200() {
  std::string text = kH200;
  for (const auto& [of_h200, of_b200] :
       {std::pair{"H200", "B200"}, std::pair{"\"deviceVer\": 900", "\"deviceVer\": 1000"},
        std::pair{"\"multiProcessorCount\": 132", "\"multiProcessorCount\": 148"}})
    text.replace(text.find(of_h200), std::string_view(of_h200).size(), of_b200);
  return text;
}

// In FP8: one kernel, that of `kernel`, and little scratch.
void check_fp8(const Fp8AttentionShape& shape, std::string_view gpu, const char* kernel) {
  INFO(text_of(shape));
  test::loaded_kernels();
  const CudnnPlan plan(attention_fp8_graph(shape), gpu);
  const std::vector<std::string> kernels = test::loaded_kernels();
  REQUIRE(kernels.size() == 1);
  CHECK_THAT(kernels[0], Catch::Contains(kernel));
  CHECK(plan.workspace() < (1 << 20));
}

Fp8AttentionShape self_fp8(std::int64_t samples, std::int64_t rows, int heads, int key_heads,
                           int head_dim, bool wide = false) {
  const std::int64_t width = std::int64_t{heads + 2 * key_heads} * head_dim;
  return {samples, rows, rows, heads, key_heads, head_dim, width, width, wide};
}

// Both directions: an engine, kernels made for Hopper, and no scratch that grows with the square of
// the rows.
void check(AttentionShape shape) {
  shape.scale = 0.125f;
  INFO(text_of(shape));
  for (const bool backward : {false, true}) {
    INFO((backward ? "backward" : "forward"));
    test::loaded_kernels();
    const CudnnPlan plan(
        backward ? attention_backward_graph(shape) : attention_forward_graph(shape), kH200);
    const std::vector<std::string> kernels = test::loaded_kernels();
    REQUIRE(kernels.size() > 0);
    for (const std::string& kernel : kernels)
      CHECK_THAT(kernel, Catch::Contains("sdpa_sm90_flash"));
    CHECK(plan.workspace() >= 0);
    CHECK(plan.workspace() < (1 << 20));
  }
}

AttentionShape self(std::int64_t samples, std::int64_t rows, int heads, int key_heads, int head_dim,
                    bool causal) {
  const std::int64_t width = std::int64_t{heads + 2 * key_heads} * head_dim;
  return {samples, rows, rows, heads, key_heads, head_dim, width, width, causal};
}

}  // namespace

TEST_CASE("cuDNN has engines for self-attention on an H200") {
  check(self(4, 8192, 32, 32, 128, false));
  check(self(1, 73728, 24, 24, 128, false));
  check(self(32, 128, 16, 16, 64, false));
  check(self(4, 8192, 32, 8, 128, false));
  check(self(2, 2048, 16, 4, 64, true));
  check(self(1, 1024, 8, 8, 128, true));
}

TEST_CASE("cuDNN has engines for cross-attention on an H200") {
  check({4, 8192, 512, 32, 32, 128, 4096, 8192, false});
  check({16, 256, 1024, 8, 4, 64, 512, 512, false});
}

TEST_CASE("cuDNN has engines for the parts of a ring on an H200") {
  const auto part = [](std::int64_t samples, std::int64_t queries, std::int64_t keys, int heads,
                       int key_heads) {
    check({samples, queries, keys, heads, key_heads, 128, std::int64_t{heads} * 128,
           std::int64_t{2} * key_heads * 128, false});
  };
  // 28B at 73,728 tokens with tp=8 cp=4; and packs of unequal parts, with shared keys.
  part(1, 18432, 18432, 6, 6);
  part(4, 2048, 1024, 16, 4);
  part(2, 128, 9216, 1, 1);
}

TEST_CASE("cuDNN has engines for a tokenizer's convolutions on an H200") {
  // Of frames at 720p and of its halves, as ops/conv/conv.h asks: over space, with a stride, over
  // time, and of single pixels.
  Conv2d space{.height = 176,
               .width = 320,
               .in = 128,
               .out = 256,
               .kernel_height = 3,
               .kernel_width = 3,
               .pad_top = 1,
               .pad_bottom = 1,
               .pad_left = 1,
               .pad_right = 1};
  Conv2d halved = space;
  halved.stride_y = halved.stride_x = 2;
  halved.pad_top = halved.pad_left = 0;
  const Conv2d time{.height = 3, .width = 14080, .in = 256, .out = 256, .kernel_height = 3};
  const Conv2d point{.height = 88, .width = 160, .in = 512, .out = 16};
  for (const Conv2d& conv : {space, halved, time, point})
    for (const ConvShape& shape :
         {ConvShape{conv}, ConvShape{conv, true}, ConvShape{conv, true, true},
          ConvShape{conv, false, false, true}}) {
      INFO(text_of(shape) << (shape.bias ? ", with a bias" : ""));
      const CudnnPlan plan(conv_graph(shape), kH200);
      CHECK(plan.workspace() >= 0);
      CHECK(plan.workspace() < (64 << 20));
    }
}

TEST_CASE("a graph that no engine takes is an Error that says so") {
  // Positions alone, in f32 memory, are nothing that it has kernels for.
  using namespace graph;
  Graph lonely;
  const Edge x = lonely.memory(1, Type::f32, packed(1, 1, 8, 7));
  const Edge y = lonely.memory(2, Type::boolean, packed(1, 1, 8, 7));
  lonely.add({Op::both, x, x, none, y});
  CHECK_THROWS_WITH(CudnnPlan(lonely, kH200), Catch::StartsWith("cuDNN "));
}

TEST_CASE("cuDNN has engines for attention in FP8 on an H200 and on a B200") {
  constexpr const char *kHopper = "sdpa_sm90_flash_fprop_wgmma_f8",
                       *kBlackwell = "sdpa_sm100_flash_fprop_f8";
  // The clip of the 7B with its two halves of guidance; one of 8 ranks that deal heads; frames of
  // any length; keys that ranks gathered; shared key heads.
  check_fp8(self_fp8(2, 56320, 32, 32, 128), kH200, kHopper);
  check_fp8(self_fp8(1, 56320, 4, 4, 128), kH200, kHopper);
  check_fp8(self_fp8(16, 3601, 16, 16, 64), kH200, kHopper);
  check_fp8({1, 7040, 56320, 32, 8, 128, 4096, 2048, false}, kH200, kHopper);
  check_fp8(self_fp8(2, 56320, 32, 32, 128, true), b200(), kBlackwell);
  check_fp8(self_fp8(16, 3601, 16, 16, 64, true), b200(), kBlackwell);
  // What it refuses, and then runs in bf16: a result in bf16 on Hopper, and a single token.
  CHECK_THROWS_WITH(CudnnPlan(attention_fp8_graph(self_fp8(1, 8192, 32, 32, 128, true)), kH200),
                    Catch::StartsWith("cuDNN has no engine for this graph"));
  CHECK_THROWS_WITH(CudnnPlan(attention_fp8_graph(self_fp8(1, 1, 32, 32, 128)), kH200),
                    Catch::StartsWith("cuDNN has no engine for this graph"));
}
