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
#include "base/work_limit.h"
#include "media/decode/hardware.h"
#include "pack/notes.h"
#include "workers/tokenizers.h"

namespace vfm::pack {
namespace {

constexpr const char* kWhat = "what a worker says of a clip";
constexpr const char* kAsked = "what is asked of a clip";

class EncoderHere final : public LatentEncoder {
 public:
  EncoderHere(const models::VideoTokenizer& tokenizer, const data::PixelOptions& options,
              GpuScales* scales)
      : tokenizer_(tokenizer), options_(options), scales_(scales) {}

  EncodedClip encode(std::string_view bytes, const std::string& name,
                     const std::string& key) const override {
    EncodedClip made;
    data::MakeCanvas make_canvas;
    if (scales_) make_canvas = [this] { return std::make_unique<GpuCanvas>(*scales_); };
    made.frames = data::read_windows(
        bytes, name, key, options_,
        [&](data::ClipPixels window, const data::ClipCanvas* canvas) {
          if (window.window == 0) made.windows.clear();
          made.windows.push_back(
              encode_window(std::move(window), static_cast<const GpuCanvas*>(canvas)));
        },
        make_canvas);
    return made;
  }

 private:
  EncodedWindow encode_window(data::ClipPixels clip, const GpuCanvas* canvas) const {
    EncodedWindow made;
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
    made.clip = std::move(clip);
    return made;
  }

  const models::VideoTokenizer& tokenizer_;
  const data::PixelOptions& options_;
  GpuScales* scales_;
};

Json words_of(const data::PixelOptions& o) {
  return {{"size", o.size},
          {"frames", o.frames},
          {"windows", o.windows},
          {"overlap", o.overlap},
          {"fps", {o.fps.num, o.fps.den}},
          {"random", o.crop == data::CropMode::random},
          {"seed", o.seed},
          {"time_step", o.time_step},
          {"multiple", o.multiple},
          {"max_pixels", input_limits().max_pixels},
          {"timeout", input_limits().timeout},
          {"work", {work_limit().pixels, work_limit().seconds}}};
}

data::PixelOptions options_of(const Json& words) {
  const auto number = [&](const char* name) { return need_integer(words, name, kAsked); };
  data::PixelOptions o;
  o.size = static_cast<int>(number("size"));
  o.frames = static_cast<int>(number("frames"));
  o.windows = static_cast<int>(number("windows"));
  o.overlap = static_cast<int>(number("overlap"));
  o.fps = {words.at("fps").at(0).get<std::int64_t>(), words.at("fps").at(1).get<std::int64_t>()};
  const bool random = get_bool(words, "random").value_or(false);
  o.crop = random ? data::CropMode::random : data::CropMode::centre;
  o.seed = words.at("seed").get<std::uint64_t>();
  o.time_step = static_cast<int>(number("time_step"));
  o.multiple = static_cast<int>(number("multiple"));
  return o;
}

Json words_of(const data::ClipPixels& clip) {
  return {{"frames", clip.frames},  {"height", clip.height}, {"width", clip.width},
          {"fps", clip.fps},        {"crop", clip.crop},     {"first_frame", clip.first_frame},
          {"begin", clip.begin},    {"end", clip.end},       {"window", clip.window},
          {"windows", clip.windows}};
}

data::ClipPixels clip_of(const Json& words) {
  data::ClipPixels clip;
  const auto number = [&](const char* field) { return need_integer(words, field, kWhat); };
  clip.frames = static_cast<int>(number("frames"));
  clip.height = static_cast<int>(number("height"));
  clip.width = static_cast<int>(number("width"));
  clip.fps = need_number(words, "fps", kWhat);
  clip.first_frame = number("first_frame");
  clip.begin = need_number(words, "begin", kWhat);
  clip.end = need_number(words, "end", kWhat);
  clip.window = number("window");
  clip.windows = number("windows");
  const auto crop = words.find("crop");
  if (crop == words.end() || !crop->is_array() || crop->size() != clip.crop.size())
    fail("{}: parts are missing", kWhat);
  for (std::size_t i = 0; i < clip.crop.size(); ++i)
    clip.crop[i] = (*crop)[i].get<int>();
  return clip;
}

Tensor tensor_of(const EncodedWindow& window, bool codes) {
  const void* const values = codes ? static_cast<const void*>(window.codes.data())
                                   : static_cast<const void*>(window.latent.data());
  const std::size_t count = codes ? window.codes.size() : window.latent.size();
  Tensor tensor({static_cast<std::int64_t>(count)}, codes ? DType::i32 : DType::f32);
  std::memcpy(tensor.raw(), values, tensor.bytes());
  return tensor;
}

class ClipService final : public workers::TokenizerService {
 public:
  ClipService(const workers::Parcel& open, Device device)
      : TokenizerService(open, device),
        scales_(device),
        hardware_(
            media::choose_hardware(need_string(open.words, "hwaccel", kAsked), {0}, &sessions_)) {}

  workers::Parcel answer(const workers::Parcel& request) override {
    if (request.name == "decodes") return {"", Json{{"decodes", hardware_ != nullptr}}, {}};
    if (request.name != "clip") return TokenizerService::answer(request);
    const OneThread one_thread;
    const Json& words = request.words;
    data::PixelOptions options = options_of(words);
    options.hardware = hardware_.get();
    InputLimits limits = input_limits();
    limits.max_pixels = words.at("max_pixels").get<std::uint64_t>();
    limits.timeout = need_number(words, "timeout", kAsked);
    set_input_limits(limits);  // no decoder is at work now
    set_work_limit({words.at("work").at(0).get<double>(), words.at("work").at(1).get<double>()});
    const EncodedClip made = EncoderHere(tokenizer(), options, &scales_)
                                 .encode(workers::text_of(request.tensors.at(0)),
                                         std::string(workers::text_of(request.tensors.at(1))),
                                         std::string(workers::text_of(request.tensors.at(2))));
    workers::Parcel answer{
        "", Json{{"frames", to_json(made.frames)}, {"windows", Json::array()}}, {}};
    for (const EncodedWindow& window : made.windows) {
      answer.words["windows"].push_back(words_of(window.clip));
      answer.tensors.push_back(tensor_of(window, tokenizer().vocabulary() > 0));
    }
    return answer;
  }

 private:
  GpuScales scales_;
  share::EngineSessions sessions_{share::kOwnSessions};
  std::shared_ptr<const media::HardwareDecoder> hardware_;
};

class EncoderInWorkers final : public LatentEncoder {
 public:
  EncoderInWorkers(workers::StageModels& models, std::size_t number,
                   const data::PixelOptions& options)
      : models_(models), number_(number), words_(words_of(options)) {}

  EncodedClip encode(std::string_view bytes, const std::string& name,
                     const std::string& key) const override {
    const workers::Parcel answer = models_.ask(
        number_,
        {"clip",
         words_,
         {workers::bytes_tensor(bytes), workers::bytes_tensor(name), workers::bytes_tensor(key)}});
    EncodedClip made;
    const auto windows = answer.words->find("windows");
    if (windows == answer.words->end() || windows->size() != answer.tensors.size())
      fail("{}: parts are missing", kWhat);
    made.frames = parse_frame_count(answer.words->value("frames", Json()));
    for (std::size_t i = 0; i < answer.tensors.size(); ++i) {
      EncodedWindow& window = made.windows.emplace_back();
      window.clip = clip_of(windows->at(i));
      const Tensor& tensor = answer.tensors[i];
      const auto count = static_cast<std::size_t>(tensor.elements());
      if (tensor.dtype() == DType::i32)
        window.codes.assign(tensor.data<std::int32_t>(), tensor.data<std::int32_t>() + count);
      else
        window.latent.assign(tensor.floats().begin(), tensor.floats().end());
    }
    return made;
  }

 private:
  workers::StageModels& models_;
  std::size_t number_;
  Json words_;
};

}  // namespace

std::unique_ptr<LatentEncoder> make_clip_encoder(const models::VideoTokenizer& tokenizer,
                                                 const data::PixelOptions& options,
                                                 GpuScales* scales) {
  return std::make_unique<EncoderHere>(tokenizer, options, scales);
}

std::unique_ptr<LatentEncoder> make_clip_encoder(workers::StageModels& models, std::size_t number,
                                                 const data::PixelOptions& options) {
  return std::make_unique<EncoderInWorkers>(models, number, options);
}

bool workers_decode(workers::StageModels& models, std::size_t number) {
  const workers::Parcel answer = models.ask(number, {"decodes", Json::object(), {}});
  return get_bool(answer.words, "decodes").value_or(false);
}

std::unique_ptr<workers::Service> open_clips(const workers::Parcel& open, Device device) {
  return std::make_unique<ClipService>(open, device);
}

}  // namespace vfm::pack
