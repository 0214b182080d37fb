// SPDX-License-Identifier: Apache-2.0
#include "workers/pictures.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "models/folder/hf_folder.h"

namespace vfm::workers {
namespace {

constexpr const char* kPictureWords = "what a worker says of pictures";
/// Memory for the activations of one request. No supported model needs as much: V-JEPA 2's largest
/// has 18432 tokens of 1408 numbers, of which queries, keys and values are the most.
constexpr std::int64_t kPackBytes = std::int64_t{1} << 30;

using Vectors = std::vector<std::vector<float>>;

/// Returns the concatenated vectors, and appends their sizes to `sizes`.
Tensor joined(std::span<const std::vector<float>> all, Json& sizes) {
  std::int64_t count = 0;
  for (const std::vector<float>& one : all) {
    sizes.push_back(one.size());
    count += static_cast<std::int64_t>(one.size());
  }
  Tensor tensor({count});
  float* to = tensor.data<float>();
  for (const std::vector<float>& one : all)
    to = std::copy(one.begin(), one.end(), to);
  return tensor;
}

Vectors taken_apart(const Tensor& tensor, const Json& sizes) {
  const std::span<const float> all = tensor.floats();
  Vectors vectors;
  std::size_t at = 0;
  for (const Json& entry : sizes) {
    const std::size_t size = entry.is_number_unsigned() ? entry.get<std::size_t>() : all.size() + 1;
    if (size > all.size() - at) fail("{}: numbers are missing", kPictureWords);
    vectors.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                         all.begin() + static_cast<std::ptrdiff_t>(at + size));
    at += size;
  }
  return vectors;
}

class PictureService final : public Service {
 public:
  explicit PictureService(std::unique_ptr<models::PictureEncoder> encoder)
      : encoder_(std::move(encoder)) {}

  Parcel answer(const Parcel& request) override {
    const Vectors prepared = taken_apart(request.tensors.at(0), request.words->at("sizes"));
    Parcel answer{"", Json{{"sizes", Json::array()}}, {}};
    answer.tensors.push_back(joined(encoder_->encode_prepared(prepared), answer.words["sizes"]));
    return answer;
  }

 private:
  std::unique_ptr<models::PictureEncoder> encoder_;
};

class WorkersPictures final : public models::PictureEncoder {
 public:
  WorkersPictures(StageModels& models, const std::string& folder, DType compute,
                  std::optional<int> frames)
      : models_(models),
        here_(models::make_picture_encoder(folder, Device::cpu, compute, frames)),
        together_(here_->together_on(models.device())) {
    // An upper bound: stored 16-bit weights may become f32.
    const std::uint64_t weights = 2 * models::HfComponent(folder).weights().bytes();
    Json words = {{"compute", dtype_name(compute)}};
    if (frames) words["frames"] = *frames;
    number_ = models.add(kPictures, {kPictures, words, {bytes_tensor(folder)}},
                         static_cast<std::int64_t>(weights) + kPackBytes);
  }

  int dim() const override { return here_->dim(); }
  int frames() const override { return here_->frames(); }
  std::vector<float> prepare(const models::PictureView& picture) const override {
    return here_->prepare(picture);
  }
  std::size_t together() const override { return together_; }
  Json config() const override { return here_->config(); }

  Vectors encode_prepared(std::span<const std::vector<float>> prepared) const override {
    Vectors all;
    for (std::size_t begin = 0; begin < prepared.size(); begin += together_) {
      const auto pack = prepared.subspan(begin, std::min(together_, prepared.size() - begin));
      Parcel request{"encode", Json{{"sizes", Json::array()}}, {}};
      request.tensors.push_back(joined(pack, request.words["sizes"]));
      const Parcel answer = models_.ask(number_, std::move(request));
      if (answer.tensors.size() != 1 || !answer.words->contains("sizes"))
        fail("{}: no vectors", kPictureWords);
      Vectors made = taken_apart(answer.tensors[0], answer.words["sizes"]);
      const auto whole = [&](const auto& one) { return std::cmp_equal(one.size(), dim()); };
      if (made.size() != pack.size() || !std::ranges::all_of(made, whole))
        fail("{}: other vectors than those of {} pictures", kPictureWords, pack.size());
      std::ranges::move(made, std::back_inserter(all));
    }
    return all;
  }

 private:
  StageModels& models_;
  std::unique_ptr<models::PictureEncoder> here_;  // prepares pictures, and hashes the weights
  std::size_t together_ = 0, number_ = 0;
};

}  // namespace

std::unique_ptr<models::PictureEncoder> pictures_in_workers(StageModels& models,
                                                            const std::string& folder,
                                                            DType compute,
                                                            std::optional<int> frames) {
  return std::make_unique<WorkersPictures>(models, folder, compute, frames);
}

std::unique_ptr<Service> open_pictures(const Parcel& open, Device device) {
  const bool low = need_string(open.words, "compute", kPictureWords) == dtype_name(DType::bf16);
  const auto frames = get_integer(open.words, "frames");
  return std::make_unique<PictureService>(models::make_picture_encoder(
      std::string(text_of(open.tensors.at(0))), device, low ? DType::bf16 : DType::f32,
      frames ? std::optional<int>(static_cast<int>(*frames)) : std::nullopt));
}

}  // namespace vfm::workers
