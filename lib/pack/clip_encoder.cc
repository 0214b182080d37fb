// SPDX-License-Identifier: Apache-2.0
#include "pack/clip_encoder.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/input_limits.h"
#include "base/json.h"
#include "base/one_thread.h"
#include "cards/tokenizers.h"
#include "media/hardware.h"

namespace vfm::pack {
namespace {

constexpr const char* kWhat = "what a worker says of a clip";
constexpr const char* kAsked = "what is asked of a clip";

class EncoderHere final : public ClipEncoder {
 public:
  EncoderHere(const models::VideoTokenizer& tokenizer, const data::ClipOptions& options,
              CardScales* scales)
      : tokenizer_(tokenizer), options_(options), scales_(scales) {}

  EncodedClip encode(std::string_view bytes, const std::string& name,
                     const std::string& key) const override {
    std::optional<CardCanvas> canvas;
    if (scales_) canvas.emplace(*scales_);
    EncodedClip made;
    data::ClipPixels& clip = made.clip;
    clip = data::clip_pixels(bytes, name, key, options_, canvas ? &*canvas : nullptr);
    const bool codes = tokenizer_.vocabulary() > 0;
    if (canvas && codes)
      made.codes = tokenizer_.codes_of_bytes(canvas->pictures());
    else if (canvas)
      made.latent = tokenizer_.encode_bytes(canvas->pictures());
    else if (codes)
      made.codes = tokenizer_.encode_codes(clip.pixels, clip.frames, clip.height, clip.width);
    else
      made.latent = tokenizer_.encode(clip.pixels, clip.frames, clip.height, clip.width);
    clip.pixels = {};
    return made;
  }

 private:
  const models::VideoTokenizer& tokenizer_;
  const data::ClipOptions& options_;
  CardScales* scales_;
};

Json words_of(const data::ClipOptions& o) {
  return {{"size", o.size},
          {"frames", o.frames},
          {"fps", {o.fps.num, o.fps.den}},
          {"random", o.crop == data::CropMode::random},
          {"seed", o.seed},
          {"time_step", o.time_step},
          {"multiple", o.multiple},
          {"max_pixels", input_limits().max_pixels},
          {"timeout", input_limits().timeout}};
}

data::ClipOptions options_of(const Json& words) {
  const auto number = [&](const char* name) { return need_integer(words, name, kAsked); };
  data::ClipOptions o;
  o.size = static_cast<int>(number("size"));
  o.frames = static_cast<int>(number("frames"));
  o.fps = {words.at("fps").at(0).get<std::int64_t>(), words.at("fps").at(1).get<std::int64_t>()};
  const bool random = get_bool(words, "random").value_or(false);
  o.crop = random ? data::CropMode::random : data::CropMode::centre;
  o.seed = words.at("seed").get<std::uint64_t>();
  o.time_step = static_cast<int>(number("time_step"));
  o.multiple = static_cast<int>(number("multiple"));
  return o;
}

class ClipService final : public cards::TokenizerService {
 public:
  ClipService(const cards::Parcel& open, Device device)
      : TokenizerService(open, device),
        scales_(device),
        hardware_(
            media::choose_hardware(need_string(open.words, "hwaccel", kAsked), {0}, &sessions_)) {}

  cards::Parcel answer(const cards::Parcel& request) override {
    if (request.name == "decodes") return {"", Json{{"decodes", hardware_ != nullptr}}, {}};
    if (request.name != "clip") return TokenizerService::answer(request);
    const OneThread one_thread;
    const Json& words = request.words;
    data::ClipOptions options = options_of(words);
    options.hardware = hardware_.get();
    InputLimits limits = input_limits();
    limits.max_pixels = words.at("max_pixels").get<std::uint64_t>();
    limits.timeout = need_number(words, "timeout", kAsked);
    set_input_limits(limits);  // no decoder is at work now
    const EncodedClip made = EncoderHere(tokenizer(), options, &scales_)
                                 .encode(cards::text_of(request.tensors.at(0)),
                                         std::string(cards::text_of(request.tensors.at(1))),
                                         std::string(cards::text_of(request.tensors.at(2))));
    const data::ClipPixels& clip = made.clip;
    const bool codes = tokenizer().vocabulary() > 0;
    const void* const values = codes ? static_cast<const void*>(made.codes.data())
                                     : static_cast<const void*>(made.latent.data());
    const std::size_t count = codes ? made.codes.size() : made.latent.size();
    Tensor tensor({static_cast<std::int64_t>(count)}, codes ? DType::i32 : DType::f32);
    std::memcpy(tensor.raw(), values, tensor.bytes());
    return {"",
            Json{{"frames", clip.frames},
             {"height", clip.height},
             {"width", clip.width},
             {"fps", clip.fps},
             {"crop", clip.crop},
             {"first_frame", clip.first_frame}},
            {std::move(tensor)}};
  }

 private:
  CardScales scales_;
  EngineSessions sessions_{kOwnSessions};
  std::shared_ptr<const media::HardwareDecoder> hardware_;
};

class EncoderInWorkers final : public ClipEncoder {
 public:
  EncoderInWorkers(cards::StageModels& models, std::size_t number, const data::ClipOptions& options)
      : models_(models), number_(number), words_(words_of(options)) {}

  EncodedClip encode(std::string_view bytes, const std::string& name,
                     const std::string& key) const override {
    const cards::Parcel answer = models_.ask(
        number_,
        {"clip",
         words_,
         {cards::bytes_tensor(bytes), cards::bytes_tensor(name), cards::bytes_tensor(key)}});
    EncodedClip made;
    data::ClipPixels& clip = made.clip;
    const auto number = [&](const char* field) { return need_integer(answer.words, field, kWhat); };
    clip.frames = static_cast<int>(number("frames"));
    clip.height = static_cast<int>(number("height"));
    clip.width = static_cast<int>(number("width"));
    clip.fps = need_number(answer.words, "fps", kWhat);
    clip.first_frame = number("first_frame");
    const auto crop = answer.words->find("crop");
    if (answer.tensors.size() != 1 || crop == answer.words->end() || !crop->is_array() ||
        crop->size() != clip.crop.size())
      fail("{}: parts are missing", kWhat);
    for (std::size_t i = 0; i < clip.crop.size(); ++i)
      clip.crop[i] = (*crop)[i].get<int>();
    const Tensor& tensor = answer.tensors[0];
    const auto count = static_cast<std::size_t>(tensor.elements());
    if (tensor.dtype() == DType::i32)
      made.codes.assign(tensor.data<std::int32_t>(), tensor.data<std::int32_t>() + count);
    else
      made.latent.assign(tensor.floats().begin(), tensor.floats().end());
    return made;
  }

 private:
  cards::StageModels& models_;
  std::size_t number_;
  Json words_;
};

}  // namespace

std::unique_ptr<ClipEncoder> make_clip_encoder(const models::VideoTokenizer& tokenizer,
                                               const data::ClipOptions& options,
                                               CardScales* scales) {
  return std::make_unique<EncoderHere>(tokenizer, options, scales);
}

std::unique_ptr<ClipEncoder> make_clip_encoder(cards::StageModels& models, std::size_t number,
                                               const data::ClipOptions& options) {
  return std::make_unique<EncoderInWorkers>(models, number, options);
}

bool workers_decode(cards::StageModels& models, std::size_t number) {
  const cards::Parcel answer = models.ask(number, {"decodes", Json::object(), {}});
  return get_bool(answer.words, "decodes").value_or(false);
}

std::unique_ptr<cards::Service> open_clips(const cards::Parcel& open, Device device) {
  return std::make_unique<ClipService>(open, device);
}

}  // namespace vfm::pack
