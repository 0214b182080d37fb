// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/picture_encoder.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "io/folder.h"
#include "models/encoder/clip_vision.h"
#include "models/encoder/dinov2.h"
#include "models/encoder/picture_input.h"
#include "models/encoder/siglip_naflex.h"
#include "models/encoder/siglip_vision.h"
#include "models/encoder/vjepa2.h"
#include "models/folder/hf_folder.h"
#include "models/folder/other_models.h"
#include "tensor/device.h"

namespace vfm::models {
namespace {

/// Tokens that go through the layers together. More would share the reading of the weights among
/// more, but hold more memory.
constexpr std::int64_t kGpuTokens = 8192, kCpuTokens = 2048;

/// Of pictures that have one size.
template <auto kMake>
std::unique_ptr<PictureTower> make_of_one_size(const HfComponent& folder, const PictureInput& input,
                                               DType compute, Device device) {
  if (input.own_sizes())
    fail_usage("'{}': Siglip2ImageProcessor goes with a SigLIP 2 of any resolution alone",
               folder.folder());
  return kMake(folder, input.size(), compute, device);
}

constexpr PictureFamily kPictureFamilies[] = {
    {"clip", true, true, false, make_of_one_size<make_clip_vision>},
    {"clip_vision_model", false, true, false, make_of_one_size<make_clip_vision>},
    {"siglip", true, false, false, make_of_one_size<make_siglip_vision>},
    {"siglip_vision_model", false, false, false, make_of_one_size<make_siglip_vision>},
    {"siglip2", true, false, false, make_siglip_naflex},
    {"siglip2_vision_model", false, false, false, make_siglip_naflex},
    {"dinov2", false, false, false, make_of_one_size<make_dinov2>},
    {"vjepa2", false, false, true, make_vjepa2},
};

std::unique_ptr<PictureTower> make_tower(const HfComponent& folder, const PictureInput& input,
                                         DType compute, Device device) {
  std::vector<std::string_view> types;
  for (const PictureFamily& family : kPictureFamilies)
    types.push_back(family.type);
  folder.need_type(types);
  return find_picture_family(folder.type())->make(folder, input, compute, device);
}

PictureInput read_input(const HfComponent& folder, std::optional<int> frames) {
  const PictureFamily* family = find_picture_family(folder.type());
  const bool video = family && family->video;
  if (video && !frames)
    fail_usage("'{}' holds a model of type {}, which makes vectors of clips, not of pictures",
               folder.folder(), folder.type());
  PictureInput input = PictureInput::from_folder(folder.folder(), video);
  input.frames = frames.value_or(0);
  return input;
}

class FolderPictureEncoder final : public PictureEncoder {
 public:
  FolderPictureEncoder(std::string folder, Device device, DType compute, std::optional<int> frames)
      : folder_(std::move(folder)),
        device_(device),
        compute_(compute),
        component_(folder_),
        input_(read_input(component_, frames)),
        tower_(make_tower(component_, input_, compute, device)),
        hash_(component_.hash()) {}

  int dim() const override { return tower_->dim(); }
  int frames() const override { return tower_->frames(); }

  std::vector<float> prepare(const PictureView& picture) const override {
    const PictureSize size = input_.size_of(picture.width, picture.height);
    std::vector<float> pixels(numbers_of(size));
    input_.read(picture, pixels);
    if (input_.own_sizes())  // which is told behind it
      pixels.insert(pixels.end(),
                    {static_cast<float>(size.height), static_cast<float>(size.width)});
    return pixels;
  }

  std::vector<std::vector<float>> encode_prepared(
      std::span<const std::vector<float>> prepared) const override {
    std::vector<std::vector<float>> vectors;
    for (std::size_t begin = 0; begin < prepared.size(); begin += together())
      encode_pack(prepared.subspan(begin, std::min(together(), prepared.size() - begin)), vectors);
    return vectors;
  }

  std::size_t together() const override { return together_on(device_); }
  std::size_t together_on(Device device) const override {
    const std::int64_t most = device == Device::cuda ? kGpuTokens : kCpuTokens;
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
  static std::size_t numbers_of(PictureSize size) {
    return 3 * static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width);
  }

  void encode_pack(std::span<const std::vector<float>> prepared,
                   std::vector<std::vector<float>>& vectors) const {
    const Tensor values =
        input_.own_sizes()
            ? run_tower([&] { return tower_->encode_each(sized(prepared)); })
            : run_tower([&, pixels = stacked(prepared)] { return tower_->encode(pixels); });
    const float* from = values.data<float>();
    for (std::size_t i = 0; i < prepared.size(); ++i, from += dim())
      vectors.emplace_back(from, from + dim());
  }

  template <class Act>
  Tensor run_tower(Act act) const {
    // In this order: who holds the GPU's turn may encode.
    const auto turn = take_turn(device_);
    const std::lock_guard one(mutex_);  // of it all threads compute
    return act();
  }

  /// Pictures of sizes of their own, [1, 3, height, width] each.
  static std::vector<Tensor> sized(std::span<const std::vector<float>> prepared) {
    std::vector<Tensor> pictures;
    for (const std::vector<float>& numbers : prepared) {
      if (numbers.size() < 2) fail("{} numbers are not a picture", numbers.size());
      const PictureSize size{static_cast<int>(numbers.end()[-2]),
                             static_cast<int>(numbers.end()[-1])};
      if (size.height < 1 || size.width < 1 || numbers.size() != numbers_of(size) + 2)
        fail("{} numbers are not a picture of {}x{}", numbers.size(), size.width, size.height);
      pictures.push_back(
          Tensor::from({numbers.begin(), numbers.end() - 2}, {1, 3, size.height, size.width}));
    }
    return pictures;
  }

  /// Pictures of one size, [N, 3 frames(), height, width].
  Tensor stacked(std::span<const std::vector<float>> prepared) const {
    const PictureSize size = input_.size();
    // How a product is summed may depend on its number of rows: so on a GPU packs have one size,
    // and what is left of it stays empty.
    const std::size_t count = device_ == Device::cuda ? together() : prepared.size();
    const Tensor pixels = Tensor::zeros(
        {static_cast<std::int64_t>(count), std::int64_t{3} * frames(), size.height, size.width});
    const std::size_t each = pixels.floats().size() / count;
    for (std::size_t i = 0; i < prepared.size(); ++i) {
      if (prepared[i].size() != each)
        fail("{} numbers are not {} pictures of {}x{}", prepared[i].size(), frames(), size.width,
             size.height);
      std::copy(prepared[i].begin(), prepared[i].end(), pixels.data<float>() + i * each);
    }
    return pixels;
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

const PictureFamily* find_picture_family(std::string_view type) {
  const auto* found = std::ranges::find(kPictureFamilies, type, &PictureFamily::type);
  return found == std::end(kPictureFamilies) ? nullptr : found;
}

std::vector<std::vector<float>> PictureEncoder::encode(
    std::span<const PictureView> pictures) const {
  std::vector<std::vector<float>> vectors, prepared;
  const auto each = static_cast<std::size_t>(frames());
  if (pictures.size() % each != 0)
    fail("{} pictures are no clips of {} frames", pictures.size(), each);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const std::vector<float> one = prepare(pictures[i]);
    if (i % each == 0) prepared.emplace_back();
    prepared.back().insert(prepared.back().end(), one.begin(), one.end());
    if ((i + 1) % each != 0 || (prepared.size() < together() && i + 1 < pictures.size())) continue;
    for (std::vector<float>& vector : encode_prepared(prepared))
      vectors.push_back(std::move(vector));
    prepared.clear();
  }
  return vectors;
}

std::unique_ptr<PictureEncoder> make_picture_encoder(const std::string& folder, Device device,
                                                     DType compute, std::optional<int> frames) {
  if (compute != DType::f32 && compute != DType::bf16)
    fail_usage("an encoder of pictures computes in f32 or bf16 alone");
  need_model_folder(folder);
  return as_usage([&] {
    return std::make_unique<FolderPictureEncoder>(io::canonical_path(folder), device, compute,
                                                  frames);
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
