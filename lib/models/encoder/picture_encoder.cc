// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/picture_encoder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "models/encoder/clip_vision.h"
#include "models/encoder/dinov2.h"
#include "models/encoder/picture_input.h"
#include "models/encoder/siglip_vision.h"
#include "models/folder/hf_folder.h"
#include "tensor/device.h"

namespace vfm::models {
namespace {

namespace fs = std::filesystem;

/// Tokens that go through the layers together. More would share the reading of the weights among
/// more, but hold more memory.
constexpr std::int64_t kGpuTokens = 8192, kCpuTokens = 2048;

std::unique_ptr<PictureTower> make_tower(const HfComponent& folder, PictureSize size, DType compute,
                                         Device device) {
  const std::string& type = folder.type();
  if (type.starts_with("siglip2"))
    fail_usage(
        "'{}' holds a SigLIP 2 of any resolution (NaFlex), which is not supported; those of a "
        "fixed resolution, of type siglip, are",
        folder.folder());
  folder.need_type({"clip", "clip_vision_model", "siglip", "siglip_vision_model", "dinov2"});
  if (type.starts_with("clip")) return make_clip_vision(folder, size, compute, device);
  if (type.starts_with("siglip")) return make_siglip_vision(folder, size, compute, device);
  return make_dinov2(folder, size, compute, device);
}

class FolderPictureEncoder final : public PictureEncoder {
 public:
  FolderPictureEncoder(std::string folder, Device device, DType compute)
      : folder_(std::move(folder)),
        device_(device),
        compute_(compute),
        component_(folder_),
        input_(PictureInput::from_folder(folder_)),
        tower_(make_tower(component_, input_.size(), compute, device)),
        hash_(component_.hash()) {}

  int dim() const override { return tower_->dim(); }

  std::vector<float> prepare(const PictureView& picture) const override {
    const PictureSize size = input_.size();
    std::vector<float> pixels(3 * static_cast<std::size_t>(size.height) *
                              static_cast<std::size_t>(size.width));
    input_.read(picture, pixels);
    return pixels;
  }

  std::vector<std::vector<float>> encode_prepared(
      std::span<const std::vector<float>> prepared) const override {
    std::vector<std::vector<float>> vectors;
    for (std::size_t begin = 0; begin < prepared.size(); begin += together())
      encode_pack(prepared.subspan(begin, std::min(together(), prepared.size() - begin)), vectors);
    return vectors;
  }

  std::size_t together() const override {
    const std::int64_t most = device_ == Device::cuda ? kGpuTokens : kCpuTokens;
    return static_cast<std::size_t>(std::max<std::int64_t>(1, most / tower_->tokens()));
  }

  Json config() const override {
    return {{"name", component_.type()},
            {"path", folder_},
            {"hash", hash_},
            {"dim", dim()},
            {"compute", compute_ == DType::bf16 ? "bf16" : "f32"},
            {"input", input_.to_json()}};
  }

 private:
  void encode_pack(std::span<const std::vector<float>> prepared,
                   std::vector<std::vector<float>>& vectors) const {
    const PictureSize size = input_.size();
    // How a product is summed may depend on its number of rows: so on a GPU packs have one size,
    // and what is left of it stays empty.
    const std::size_t count = device_ == Device::cuda ? together() : prepared.size();
    const Tensor pixels =
        Tensor::zeros({static_cast<std::int64_t>(count), 3, size.height, size.width});
    const std::size_t each = pixels.floats().size() / count;
    for (std::size_t i = 0; i < prepared.size(); ++i) {
      if (prepared[i].size() != each)
        fail("{} numbers are no picture of {}x{}", prepared[i].size(), size.width, size.height);
      std::copy(prepared[i].begin(), prepared[i].end(), pixels.data<float>() + i * each);
    }
    Tensor values;
    {
      // In this order: who holds the GPU's turn may encode.
      const auto turn = take_turn(device_);
      const std::lock_guard one(mutex_);  // of it all threads compute
      values = tower_->encode(pixels);
    }
    const float* from = values.data<float>();
    for (std::size_t i = 0; i < prepared.size(); ++i, from += dim())
      vectors.emplace_back(from, from + dim());
  }

  std::string folder_;
  Device device_;
  DType compute_;
  HfComponent component_;
  PictureInput input_;
  std::unique_ptr<PictureTower> tower_;
  std::string hash_;
  mutable std::mutex mutex_;
};

}  // namespace

std::vector<std::vector<float>> PictureEncoder::encode(
    std::span<const PictureView> pictures) const {
  std::vector<std::vector<float>> vectors, prepared;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    prepared.push_back(prepare(pictures[i]));
    if (prepared.size() < together() && i + 1 < pictures.size()) continue;
    for (std::vector<float>& vector : encode_prepared(prepared))
      vectors.push_back(std::move(vector));
    prepared.clear();
  }
  return vectors;
}

std::unique_ptr<PictureEncoder> make_picture_encoder(const std::string& folder, Device device,
                                                     DType compute) {
  if (compute != DType::f32 && compute != DType::bf16)
    fail_usage("an encoder of pictures computes in f32 or bf16 alone");
  if (!fs::exists(folder)) fail_usage("no such model folder: '{}'", folder);
  return as_usage([&] {
    return std::make_unique<FolderPictureEncoder>(fs::canonical(folder).string(), device, compute);
  });
}

void normalise(std::vector<float>& vector) {
  double sum = 0;
  for (const float value : vector)
    sum += double{value} * value;
  if (!(sum > 0)) return;
  const double factor = 1 / std::sqrt(sum);
  for (float& value : vector)
    value = static_cast<float>(value * factor);
}

}  // namespace vfm::models
