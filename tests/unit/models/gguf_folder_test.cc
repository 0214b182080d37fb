// A Qwen2.5-VL with llama.cpp's weights against transformers with the same numbers
// (scripts/golden/gguf_weights.py).
// SPDX-License-Identifier: Apache-2.0
#include "models/folder/gguf_folder.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "io/file.h"
#include "io/gguf.h"
#include "io/safetensors.h"
#include "models/vlm/qwen.h"
#include "models/vlm/token_choice.h"
#include "support/one_answer.h"
#include "support/temporary_folder.h"

using namespace vfm;
namespace fs = std::filesystem;

namespace {

const std::string kGguf = std::string(VFM_GOLDEN) + "/gguf";
const std::string kSeen = std::string(VFM_GOLDEN) + "/qwen";

std::vector<std::int32_t> whole_numbers(const io::TensorSet& set, const std::string& name) {
  const io::TensorView& view = *set.find(name);
  std::vector<std::int32_t> numbers(view.data.size() / 4);
  std::memcpy(numbers.data(), view.data.data(), view.data.size());
  return numbers;
}

double farthest_logit(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  double most = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i)
    most = std::max(most, std::abs(double{a.floats()[static_cast<std::size_t>(i)]} -
                                   double{b.floats()[static_cast<std::size_t>(i)]}));
  return most;
}

std::vector<models::QwenPicture> seen_in(const io::TensorSet& qwen, const std::string& prompt) {
  if (prompt == "text") return {};
  const bool still = prompt == "image";
  const std::vector<std::int64_t> grids = [&] {
    const io::TensorView& view = *qwen.find("grids");
    std::vector<std::int64_t> all(view.data.size() / 8);
    std::memcpy(all.data(), view.data.data(), view.data.size());
    return all;
  }();
  const std::size_t at = still ? 0 : 3;
  models::QwenPicture picture;
  picture.sight = {{static_cast<int>(grids[at]), static_cast<int>(grids[at + 1]),
                    static_cast<int>(grids[at + 2])},
                   still,
                   0.7};
  picture.patches = models::read_floats(*qwen.find(still ? "picture" : "clip"));
  return {picture};
}

/// What opening a folder of these files says; "" if nothing.
std::string refused(const std::vector<std::string>& files) {
  const TemporaryFolder folder;
  for (const std::string& file : files)
    fs::copy_file(file, folder.path + "/" + fs::path(file).filename().string());
  try {
    models::open_gguf_weights(folder.path);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("blocks of GGUF are the numbers that the gguf package makes of them, to the bit") {
  const io::GgufFile blocks(kGguf + "/blocks.gguf");
  const io::SafetensorsSet numbers(kGguf, "blocks");
  CHECK(blocks.texts().at("general.architecture") == "none");
  CHECK(blocks.counts().at("a.truth") == 1);
  REQUIRE(blocks.tensors().size() == 6);
  for (const io::TensorView& tensor : blocks.tensors()) {
    INFO(tensor.name);
    const io::TensorView& expected = *numbers.find(tensor.name);
    CHECK(tensor.shape == expected.shape);
    CHECK(tensor.dtype == tensor.name);
    const Tensor made = models::read_floats(tensor);
    REQUIRE(made.bytes() == expected.data.size());
    CHECK(std::memcmp(made.raw(), expected.data.data(), made.bytes()) == 0);
  }
  std::byte room[34];
  CHECK_THROWS_AS(blocks.read("Q8_0", io::TensorRange{{5, 96}, {0, 0}, {1, 32}}, 0, room), Error);
}

TEST_CASE("a model of GGUF files computes the logits and writes the texts of transformers") {
  const io::SafetensorsSet golden(kGguf, "outputs"), qwen(kSeen, "outputs");
  const models::HfComponent folder(kGguf + "/model");
  for (const DType compute : {DType::f32, DType::bf16}) {
    const models::Qwen model(folder, compute);
    for (const std::string prompt : {"image", "video", "text"}) {
      INFO(prompt << " " << dtype_name(compute));
      std::vector<std::int32_t> ids = whole_numbers(qwen, "untied." + prompt + ".ids");
      const Tensor expected = models::read_floats(*golden.find(prompt + ".logits"));
      models::QwenAnswer answer(model, ids, seen_in(qwen, prompt), 12);
      const Tensor all = all_logits(answer, ids.size());
      const Tensor last = all.rows(all.size(0) - 2, all.size(0)).clone();
      CHECK(farthest_logit(last, expected) < (compute == DType::f32 ? 1e-4 : 1));
      if (compute != DType::f32) continue;
      for (const std::int32_t token : whole_numbers(golden, prompt + ".greedy")) {
        CHECK(models::choose_token(next_logits(answer).floats(), ids, {}, 0.5) == token);
        write_token(answer, token);
      }
    }
  }
  CHECK_THROWS_WITH(models::Qwen(folder, DType::f32, true),
                    Catch::Contains("is not rounded again"));
}

TEST_CASE("folders whose GGUF files are no one model are refused by name") {
  const std::string model = kGguf + "/model/";
  const std::string first = model + "text-Q4_K_M-00001-of-00002.gguf";
  const std::string second = model + "text-Q4_K_M-00002-of-00002.gguf";
  const std::string tower = model + "mmproj-F16.gguf";
  CHECK(refused({first, second, tower}).empty());
  CHECK_THAT(refused({first, tower}), Catch::Contains("1 of 2 parts of a text model"));
  CHECK_THAT(refused({first, second}), Catch::Contains("has no GGUF file of the tower that sees"));
  CHECK_THAT(refused({tower}), Catch::Contains("has no GGUF file of a text model"));
  CHECK_THAT(refused({first, second, tower, kGguf + "/blocks.gguf"}),
             Catch::Contains("is of the architecture 'none': here qwen2vl works"));
  const TemporaryFolder copies;
  const std::string again = copies.path + "/mmproj-Q8_0.gguf";
  fs::copy_file(tower, again);
  CHECK_THAT(refused({first, second, tower, again}),
             Catch::Contains("several GGUF files of the tower") && Catch::Contains("leave one"));
  const std::string part = copies.path + "/another-00001-of-00002.gguf";
  fs::copy_file(first, part);
  CHECK_THAT(refused({first, part, second, tower}), Catch::Contains("which it cannot be"));
  // A folder that has both kinds of weights.
  for (const std::string name : {"config.json", "mmproj-F16.gguf"})
    fs::copy_file(model + name, copies.path + "/" + name);
  fs::copy_file(kSeen + "/tied/model.safetensors", copies.path + "/model.safetensors");
  const models::HfComponent both(copies.path);
  CHECK_THROWS_WITH(both.weights(), Catch::Contains("weights twice"));
}
