// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/picture_input.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {
namespace {

constexpr int kLongestSide = 1 << 14;

/// What a processor has where its file does not say.
struct Defaults {
  bool square = false;  ///< of a size that is one number: both sides, else the shorter one
  bool crops = true;
  std::array<double, 3> mean, deviation;
  bool patches = false;  ///< pictures have sizes of their own
  bool video = false;    ///< the crop decides the size, too
};

constexpr std::array<double, 3> kClipMean = {0.48145466, 0.4578275, 0.40821073},
                                kClipDeviation = {0.26862954, 0.26130258, 0.27577711},
                                kHalves = {0.5, 0.5, 0.5}, kImageNetMean = {0.485, 0.456, 0.406},
                                kImageNetDeviation = {0.229, 0.224, 0.225};

/// Reads the settings of one file, and knows which it has read.
class Settings {
 public:
  Settings(const Json& config, std::string_view what) : config_(config), what_(what) {}

  template <class... Args>
  [[noreturn]] void refuse(const char* name, FormatString<Args...> pattern, Args&&... args) const {
    fail_usage("{}: \"{}\" {}", what_, name, vfm::format(pattern, std::forward<Args>(args)...));
  }
  /// The setting, or null if it is not there.
  const Json& operator[](const char* name) {
    static const Json nothing;
    known_.insert(name);
    const auto found = config_.find(name);
    return found == config_.end() ? nothing : *found;
  }
  bool flag(const char* name, bool fallback) {
    const Json& value = (*this)[name];
    if (value.is_null()) return fallback;
    if (!value.is_boolean()) refuse(name, "must be true or false, not {}", dump_json(value));
    return value.get<bool>();
  }
  double number(const char* name, double fallback) {
    const Json& value = (*this)[name];
    if (value.is_null()) return fallback;
    if (!value.is_number()) refuse(name, "must be a number, not {}", dump_json(value));
    return value.get<double>();
  }
  std::array<double, 3> channels(const char* name, const std::array<double, 3>& fallback) {
    const Json& value = (*this)[name];
    if (value.is_null()) return fallback;
    if (!value.is_array() || value.size() != 3 ||
        !std::all_of(value.begin(), value.end(), [](const Json& of) { return of.is_number(); }))
      refuse(name, "must be three numbers, not {}", dump_json(value));
    return value.get<std::array<double, 3>>();
  }
  int side(const char* name, const Json& value) const {
    const bool fits = value.is_number_integer() && value >= 1 && value <= kLongestSide;
    if (!fits) refuse(name, "must have sides of 1 to {}, not {}", kLongestSide, dump_json(value));
    return value.get<int>();
  }
  /// Of {"height", "width"}.
  PictureSize sides(const char* name, const Json& value) const {
    if (!value.is_object() || value.size() != 2 || !value.contains("height") ||
        !value.contains("width"))
      refuse(name, "must be a height and a width, not {}", dump_json(value));
    return {side(name, value["height"]), side(name, value["width"])};
  }
  /// What was not asked for, and says something.
  void refuse_others() const {
    for (const auto& [name, value] : config_.items()) {
      const bool silent = value.is_null() || (value.is_boolean() && !value.get<bool>());
      if (!silent && !known_.count(name) && !name.starts_with('_'))
        refuse(name.c_str(), "is {}, which is not supported here", dump_json(value));
    }
  }

 private:
  const Json& config_;
  std::string_view what_;
  std::set<std::string> known_;
};

/// "CLIPImageProcessor" of "CLIPFeatureExtractor", "CLIPImageProcessorFast"...
std::string plain_type(Settings& settings) {
  const char* key = "image_processor_type";
  std::string type;
  for (const char* name : {"feature_extractor_type", key, "video_processor_type"})
    if (const Json& value = settings[name]; value.is_string()) type = value.get<std::string>();
  for (const std::string_view end :
       {"Fast", "Pil", "FeatureExtractor", "ImageProcessor", "VideoProcessor"})
    if (type.ends_with(end)) type.resize(type.size() - end.size());
  return type;
}

Defaults defaults_of(Settings& settings) {
  const std::string type = plain_type(settings);
  if (type == "CLIP" || type == "Bit") return {false, true, kClipMean, kClipDeviation};
  if (type == "Siglip") return {true, false, kHalves, kHalves};
  if (type == "Siglip2") return {true, false, kHalves, kHalves, true};
  if (type == "VJEPA2") return {false, true, kImageNetMean, kImageNetDeviation, false, true};
  settings.refuse("image_processor_type",
                  "names none of the processors that work here: CLIPImageProcessor, "
                  "SiglipImageProcessor, Siglip2ImageProcessor, BitImageProcessor, "
                  "VJEPA2VideoProcessor");
}

void read_size(Settings& settings, const Defaults& defaults, PictureInput& input) {
  const Json& size = settings["size"];
  if (size.is_null()) {
    if (defaults.square)
      input.resized = {224, 224};
    else
      input.shortest_edge = 224;
  } else if (size.is_object() && size.size() == 1 && size.contains("shortest_edge")) {
    input.shortest_edge = settings.side("size", size["shortest_edge"]);
  } else if (size.is_object()) {
    input.resized = settings.sides("size", size);
  } else if (const int side = settings.side("size", size); defaults.square) {
    input.resized = {side, side};
  } else {
    input.shortest_edge = side;
  }
}

PictureSize read_crop(Settings& settings, const Defaults& defaults) {
  const Json& size = settings["crop_size"];
  if (size.is_null()) return defaults.video ? PictureSize{256, 256} : PictureSize{224, 224};
  if (size.is_object()) return settings.sides("crop_size", size);
  const int side = settings.side("crop_size", size);
  return {side, side};
}

/// Of NaFlex.
void read_patches(Settings& settings, PictureInput& input) {
  const auto number = [&](const char* name, int fallback) {
    const Json& value = settings[name];
    return value.is_null() ? fallback : settings.side(name, value);
  };
  input.patch = number("patch_size", 16);
  input.most_patches = number("max_num_patches", 256);
  if (std::int64_t{input.most_patches} * input.patch * input.patch >
      std::int64_t{kLongestSide} * kLongestSide)
    settings.refuse("max_num_patches", "is {}, of {} pixels each way: more than {} each way",
                    input.most_patches, input.patch, kLongestSide);
  if (!settings.flag("do_resize", true))
    settings.refuse("do_resize", "is false: pictures could have any number of patches");
}

/// A side of `length` at a scale, in whole patches.
std::int64_t in_patches(double scale, int length, int patch) {
  const double patches = std::ceil(length * scale / patch);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(patches));
}

/// How long the other side becomes, as Python's int() of a quotient has it.
std::int64_t other_side(int shortest, int longer, int shorter) {
  return static_cast<std::int64_t>(static_cast<double>(std::int64_t{shortest} * longer) /
                                   static_cast<double>(shorter));
}

std::int64_t floor_half(std::int64_t n) {
  return n >= 0 ? n / 2 : -((1 - n) / 2);
}

/// Which of `kept` pixels of a side that has `whole` are of the picture, and where the first is.
struct Overlap {
  std::int64_t from = 0;  ///< in the picture
  int to = 0, count = 0;  ///< in the crop

  Overlap(std::int64_t whole, int kept) {
    const std::int64_t begin = floor_half(whole - kept);
    from = std::max<std::int64_t>(0, begin);
    to = static_cast<int>(from - begin);
    count = static_cast<int>(std::min<std::int64_t>(whole, kept));
  }
};

}  // namespace

PictureInput PictureInput::from_json(const Json& config, std::string_view what) {
  Settings settings(config, what);
  const Defaults defaults = defaults_of(settings);
  PictureInput input;
  if (defaults.patches)
    read_patches(settings, input);
  else if (settings.flag("do_resize", true)) {
    if (defaults.video)
      input.shortest_edge = read_crop(settings, defaults).height * 256 / 224;
    else
      read_size(settings, defaults, input);
  }
  const double resample = settings.number("resample", defaults.patches || defaults.video ? 2 : 3);
  if (resample != 1 && resample != 2 && resample != 3)
    settings.refuse("resample", "is {}; 1 (Lanczos), 2 (bilinear) and 3 (bicubic) work here",
                    dump_json(settings["resample"]));
  input.resample = static_cast<Resample>(static_cast<int>(resample));
  if (!defaults.patches && settings.flag("do_center_crop", defaults.crops))
    input.crop = read_crop(settings, defaults);
  if (input.size() == PictureSize{} && !defaults.patches)
    settings.refuse("do_center_crop",
                    "is false and \"size\" names no height and width: pictures "
                    "would have sizes of their own, which is not supported here");
  if (settings.flag("do_rescale", true))
    input.factor = settings.number("rescale_factor", 1.0 / 255);
  if (settings.flag("do_normalize", true)) {
    input.mean = settings.channels("image_mean", defaults.mean);
    input.deviation = settings.channels("image_std", defaults.deviation);
  }
  for (const double deviation : input.deviation)
    if (!(std::abs(static_cast<float>(deviation)) > 0))
      settings.refuse("image_std", "is 0, by which is divided");
  // Which frames of a video are taken is the caller's part.
  if (settings.flag("do_sample_frames", false))
    settings.refuse("do_sample_frames", "is true, which is not supported here");
  // Of what these say nothing depends here: pictures are RGB, and what is switched off may be said.
  for (const char* idle : {"size", "crop_size", "rescale_factor", "image_mean", "image_std", "fps",
                           "num_frames", "do_convert_rgb", "default_to_square", "processor_class"})
    settings[idle];
  for (const char* layout : {"data_format", "input_data_format"})
    if (const Json& value = settings[layout]; !value.is_null() && value != "channels_first")
      settings.refuse(layout, "is {}, which is not supported here", dump_json(value));
  settings.refuse_others();
  return input;
}

PictureInput PictureInput::from_folder(const std::string& folder, bool video) {
  const char *own = "preprocessor_config.json", *of_video = "video_preprocessor_config.json",
             *shared = "processor_config.json";
  const char* part = video ? "video_processor" : "image_processor";
  const auto has = [&](const char* name) { return io::file_exists(io::join_path(folder, name)); };
  const auto what = [&](const char* name) {
    return fmt::format("'{}'", io::join_path(folder, name));
  };
  if (video && !has(own)) own = of_video;
  if (has(shared) && (video || !has(own))) {
    const Json config = read_config(folder, shared);
    if (config.contains(part) && config[part].is_object())
      return from_json(config[part], what(shared));
    if (!has(own)) fail_usage("{} has no \"{}\", and there is no {}", what(shared), part, own);
  }
  const char* name = video && has(of_video) ? of_video : own;
  return from_json(read_config(folder, name), what(name));
}

Json PictureInput::to_json() const {
  Json json = Json::object();
  if (own_sizes()) json = {{"patch", patch}, {"most_patches", most_patches}};
  if (shortest_edge > 0) json["shortest_edge"] = shortest_edge;
  if (shortest_edge == 0 && resized.height > 0) json["size"] = {resized.height, resized.width};
  if (!json.empty())
    json["resample"] = resample == Resample::lanczos    ? "lanczos"
                       : resample == Resample::bilinear ? "bilinear"
                                                        : "bicubic";
  if (crop.height > 0) json["crop"] = {crop.height, crop.width};
  json["factor"] = factor;
  json["mean"] = mean;
  json["std"] = deviation;
  return json;
}

PictureSize PictureInput::size_of(int width, int height) const {
  if (width < 1 || height < 1) fail("no picture of {}x{} can be seen", width, height);
  if (!own_sizes()) return size();
  // As the processor looks for it: halves an interval of scales, with bounds of its own.
  constexpr double kPrecision = 1e-5;
  double below = kPrecision / 10, above = 100;
  const auto count = [&](double scale) {
    return in_patches(scale, height, patch) * in_patches(scale, width, patch);
  };
  while (above - below >= kPrecision) {
    const double middle = (below + above) / 2;
    (count(middle) <= most_patches ? below : above) = middle;
  }
  if (count(below) > most_patches)
    fail("a picture of {}x{} has no size of {} patches", width, height, most_patches);
  return {static_cast<int>(in_patches(below, height, patch) * patch),
          static_cast<int>(in_patches(below, width, patch) * patch)};
}

std::vector<std::uint8_t> PictureInput::place(const PictureView& picture) const {
  std::int64_t width = picture.width, height = picture.height;
  if (picture.width > 0 && picture.height > 0 && shortest_edge > 0) {
    const bool tall = picture.width <= picture.height;
    width = tall ? shortest_edge : other_side(shortest_edge, picture.width, picture.height);
    height = tall ? other_side(shortest_edge, picture.height, picture.width) : shortest_edge;
  } else if (resized.height > 0) {
    width = resized.width;
    height = resized.height;
  }
  const PictureSize whole = own_sizes() ? size_of(picture.width, picture.height) : size();
  if (own_sizes()) {
    width = whole.width;
    height = whole.height;
  }
  const Overlap across(width, whole.width), down(height, whole.height);
  std::vector<std::uint8_t> middle = resize_picture(
      picture, width, height, resample, {across.from, down.from, across.count, down.count});
  if (across.count == whole.width && down.count == whole.height) return middle;
  const std::size_t bytes = 3 * static_cast<std::size_t>(whole.width);
  std::vector<std::uint8_t> padded(static_cast<std::size_t>(whole.height) * bytes, 0);
  const std::size_t part = 3 * static_cast<std::size_t>(across.count);
  for (int y = 0; y < down.count; ++y)
    std::memcpy(padded.data() + static_cast<std::size_t>(down.to + y) * bytes +
                    3 * static_cast<std::size_t>(across.to),
                middle.data() + static_cast<std::size_t>(y) * part, part);
  return padded;
}

void PictureInput::read(const PictureView& picture, std::span<float> out) const {
  const std::vector<std::uint8_t> bytes = place(picture);
  if (out.size() != bytes.size())
    fail("{} numbers are not those of a picture of {} bytes", out.size(), bytes.size());
  const std::size_t pixels = bytes.size() / 3;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const auto mean_of = static_cast<float>(mean[channel]);
    const auto deviation_of = static_cast<float>(deviation[channel]);
    std::array<float, 256> number{};
    for (int byte = 0; byte < 256; ++byte)
      number[static_cast<std::size_t>(byte)] =
          (static_cast<float>(byte * factor) - mean_of) / deviation_of;
    for (std::size_t i = 0; i < pixels; ++i)
      out[channel * pixels + i] = number[bytes[3 * i + channel]];
  }
}

}  // namespace vfm::models
