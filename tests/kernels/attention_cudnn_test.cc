// What cuDNN says to our graphs without a GPU: every tensor and operation, and the graph of them.
// Whether an engine takes them is emulation/cudnn_plans_test.cc.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/error.h"
#include "ops/attention/attention_graph.h"
#include "ops/cudnn/cudnn_cuda.h"
#include "ops/cudnn/cudnn_plan_cuda.h"
#include "tensor/device.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

AttentionShape self(std::int64_t samples, std::int64_t rows, int heads, int key_heads, int head_dim,
                    bool causal) {
  const std::int64_t width = std::int64_t{heads + 2 * key_heads} * head_dim;
  return {samples, rows, rows, heads, key_heads, head_dim, width, width, causal, 0.125f};
}

AttentionShape cross(std::int64_t samples, std::int64_t queries, std::int64_t keys, int heads,
                     int key_heads, int head_dim) {
  return {samples,
          queries,
          keys,
          heads,
          key_heads,
          head_dim,
          std::int64_t{heads} * head_dim,
          std::int64_t{2} * key_heads * head_dim,
          false,
          0.125f};
}

}  // namespace

TEST_CASE("cuDNN takes the graphs of attention, forward and backward") {
  REQUIRE(why_no_cudnn_library() == "");
  for (const AttentionShape& shape :
       {self(4, 8192, 32, 32, 128, false), self(1, 128, 1, 1, 64, false),
        self(8, 1024, 16, 16, 64, true), self(2, 9216, 32, 8, 128, false),
        self(2, 2048, 8, 1, 128, true), self(1, 73728, 24, 24, 128, false),
        cross(4, 8192, 512, 32, 32, 128), cross(16, 256, 1024, 8, 4, 64)}) {
    INFO(text_of(shape));
    CHECK_NOTHROW(CudnnGraph(attention_forward_graph(shape)));
    CHECK_NOTHROW(CudnnGraph(attention_backward_graph(shape)));
  }
}

TEST_CASE("what cuDNN refuses is an Error that says what it was") {
  using namespace graph;
  Graph wrong;
  const Edge a = wrong.memory(1, Type::bf16, packed(1, 1, 64, 32));
  const Edge b = wrong.memory(2, Type::bf16, packed(1, 1, 48, 64));  // not 32 rows
  const Edge out = wrong.memory(3, Type::bf16, packed(1, 1, 64, 64));
  wrong.add({graph::Op::matmul, a, b, none, out});
  CHECK_THROWS_WITH(CudnnGraph(wrong), Catch::StartsWith("cuDNN cannot "));

  CHECK_THROWS_AS(CudnnGraph(Graph()), Error);
  CHECK_THROWS_WITH(
      CudnnPlan(attention_forward_graph(self(1, 128, 1, 1, 64, false)), R"({"no": "GPU"})"),
      Catch::StartsWith("cuDNN cannot describe a GPU"));
}

TEST_CASE("without a GPU there is no cuDNN, and it says why") {
  if (why_no_gpu().empty()) return;
  CHECK(why_no_cudnn() == why_no_gpu());
}
