// A clip made on the GPU, as the emulation runs it, against the CPU's: text, sampling and decoding,
// of a whole pipeline folder.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "generate/sampling/generator.h"
#include "support/temporary_folder.h"
#include "tensor/device.h"

using namespace vfm;
namespace fs = std::filesystem;

namespace {

/// The golden parts as one folder.
class Pipeline {
 public:
  Pipeline() {
    const fs::path golden = VFM_GOLDEN;
    fs::copy(golden / "cosmos_pipeline", path(), fs::copy_options::recursive);
    fs::copy(golden / "cosmos_vae", folder_ / "vae", fs::copy_options::recursive);
    for (const char* part : {"text_encoder", "tokenizer"})
      fs::copy(golden / "t5/v1_0" / part, folder_ / part, fs::copy_options::recursive);
  }
  const std::string& path() const { return folder_.path; }

 private:
  const TemporaryFolder folder_;
};

/// `compute` is the tokenizer's, or empty.
std::vector<std::uint8_t> frames_on(const std::string& folder, Device device,
                                    const std::string& compute) {
  models::LoadedModel model =
      models::load_model(models::OpenedModel(folder, true), DType::f32, device);
  model.facts.tokenizer->compute = compute;
  const generate::Generator generator(std::move(model));
  const std::string usual = device == Device::cuda ? "bf16" : "";
  CHECK(generator.tokenizer().config().compute == (compute.empty() ? usual : compute));
  generate::ClipRequest request;
  request.prompt = "a red fox";
  request.frames = 9, request.height = 16, request.width = 16, request.fps = 30;
  generate::SampleOptions options = generator.sampling();
  options.steps = 2;
  const generate::Latent latent = generator.denoise(request, options);
  std::vector<std::uint8_t> bytes;
  const std::size_t before = cuda_memory().current;
  reset_cuda_peak();
  generate::decode_frames(generator.tokenizer(), latent, request.frames, request.height,
                          request.width, [&](std::span<const std::uint8_t> frame) {
                            bytes.insert(bytes.end(), frame.begin(), frame.end());
                          });
  // Decoded there too.
  CHECK((cuda_memory().peak > before) == (device == Device::cuda));
  return bytes;
}

}  // namespace

TEST_CASE("the frames that the GPU makes and decodes are the CPU's") {
  const Pipeline folder;
  const std::vector<std::uint8_t> expected = frames_on(folder.path(), Device::cpu, "");
  const auto apart = [&](const std::string& compute) {
    const std::vector<std::uint8_t> made = frames_on(folder.path(), Device::cuda, compute);
    REQUIRE(made.size() == std::size_t{9} * 16 * 16 * 3);
    REQUIRE(made.size() == expected.size());
    CHECK(std::ranges::max(made) > std::ranges::min(made) + 20);
    int most = 0;
    for (std::size_t i = 0; i < made.size(); ++i)
      most = std::max(most, std::abs(int{made[i]} - int{expected[i]}));
    return most;
  };
  CHECK(apart("f32") <= 1);
  // By itself it computes in bf16 there.
  const int low = apart("");
  CHECK(low > 1);
  CHECK(low < 16);
}
