// LAION's aesthetic heads against PyTorch's modules (scripts/golden/aesthetic_heads.py).
// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/aesthetic_head.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/json.h"
#include "io/safetensors.h"
#include "models/folder/load_tensors.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using models::AestheticHead;

namespace {

const std::string kHeads = std::string(VFM_GOLDEN) + "/aesthetic_heads";
constexpr int kHeadDim = 12;

/// A linear head of these numbers, in a file.
std::string linear_head(const TemporaryFolder& folder, const std::vector<float>& weight,
                        const std::vector<std::int64_t>& shape, const std::vector<float>& bias,
                        const std::string& bias_name = "bias") {
  const auto bytes = [](const std::vector<float>& values) {
    return std::as_bytes(std::span(values));
  };
  const auto outputs = static_cast<std::int64_t>(bias.size());
  io::write_safetensors(
      folder.path, "head",
      {{"weight", "F32", shape, bytes(weight)}, {bias_name, "F32", {outputs}, bytes(bias)}});
  return folder / "head.safetensors";
}

}  // namespace

TEST_CASE("aesthetic heads score as PyTorch's modules do") {
  const io::SafetensorsSet golden(kHeads, "outputs");
  const Tensor vectors = models::read_floats(*golden.find("vectors"));
  const struct {
    const char *file, *outputs, *head;
  } cases[] = {{"linear.pth", "linear", "linear"},
               {"mlp.pth", "mlp", "mlp"},
               {"mlp.safetensors", "mlp_f16", "mlp"},
               {"relu.pth", "relu", "mlp:relu"}};
  for (const auto& one : cases) {
    INFO(one.file);
    const AestheticHead head(kHeads + "/" + one.file, kHeadDim);
    CHECK(head.config()["head"] == one.head);
    const Tensor expected = models::read_floats(*golden.find(one.outputs));
    for (std::size_t i = 0; i < expected.floats().size(); ++i)
      CHECK(head.score(vectors.floats().subspan(i * kHeadDim, kHeadDim)) ==
            Approx(expected.floats()[i]).epsilon(1e-5));
  }
  CHECK(AestheticHead(kHeads + "/mlp.pth", kHeadDim).config() !=
        AestheticHead(kHeads + "/mlp.safetensors", kHeadDim).config());
}

TEST_CASE("what is no aesthetic head, or one of another encoder, is refused") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& file, int dim) {
    return usage_error([&] { AestheticHead(file, dim); });
  };
  CHECK_THAT(refused(kHeads + "/mlp.pth", 768),
             Catch::Contains("scores vectors of 12 numbers, and the encoder's have 768"));
  CHECK_THAT(refused(kHeads + "/outputs.safetensors", 12), Catch::Contains("not an aesthetic head"));
  CHECK_THAT(refused(folder / "none.pth", 12), Catch::Contains("none.pth"));
  CHECK_THAT(refused(linear_head(folder, {1, 2}, {2}, {0}), 2), Catch::Contains("other shapes"));
  CHECK_THAT(refused(linear_head(folder, {1, 2, 3, 4}, {2, 2}, {0, 0}), 2),
             Catch::Contains("other shapes"));
  CHECK_THAT(refused(linear_head(folder, {1, 2}, {1, 2}, {0, 0}), 2),
             Catch::Contains("other shapes"));
  CHECK_THAT(refused(linear_head(folder, {1, std::nanf("")}, {1, 2}, {0}), 2),
             Catch::Contains("weight has values that are not finite"));
  CHECK_THAT(refused(linear_head(folder, {1, 2}, {1, 2}, {0}, "offset"), 2),
             Catch::Contains("not an aesthetic head"));
  const std::vector<std::int64_t> whole{1, 2};
  io::write_safetensors(folder.path, "whole",
                        {{"weight", "I64", {1, 2}, std::as_bytes(std::span(whole))},
                         {"bias", "I64", {1}, std::as_bytes(std::span(whole).first(1))}});
  CHECK_THAT(refused(folder / "whole.safetensors", 2),
             Catch::Contains("'" + folder / "whole.safetensors" +
                             "' is not an aesthetic head: tensor 'weight' is I64"));
  CHECK(
      AestheticHead(linear_head(folder, {1, 2}, {1, 2}, {0.5f}), 2).score(std::vector{3.f, 4.f}) ==
      11.5);
}
