// What the tests of columns share: small videos, shards of them, and what a run leaves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "io/file.h"
#include "io/manifest.h"
#include "media/encode/encoder.h"
#include "shard/reader.h"
#include "shard/writer.h"
#include "share/slots.h"

namespace vfm::columns {

/// The records of one run, and the progress that it tells.
class Run : public Progress {
 public:
  explicit Run(int threads = 1) : slots(threads), manifest(fd_) {}
  ~Run() override { ::close(fd_); }

  std::vector<Json> records() const {
    std::vector<Json> found;
    const std::string text = io::read_file("/proc/self/fd/" + std::to_string(fd_));
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      found.push_back(parse_json(text.substr(at, end - at), "a record"));
    }
    return found;
  }
  void start(std::string_view of, std::uint64_t all) override { unit = of, total = all; }
  void add(std::uint64_t more) override {
    const std::lock_guard lock(mutex_);
    done += more;
  }

 private:
  int fd_ = ::memfd_create("records", MFD_CLOEXEC);
  std::mutex mutex_;  // guards done

 public:
  share::Slots slots;
  io::ManifestWriter manifest;
  std::string unit;
  std::uint64_t total = 0, done = 0;
};

using Colour = std::array<std::uint8_t, 3>;

inline media::RgbImage plain_image(Colour colour, int width, int height) {
  media::RgbImage image{width, height, {}};
  for (int i = 0; i < width * height; ++i)
    image.pixels.insert(image.pixels.end(), colour.begin(), colour.end());
  return image;
}

/// A video of pictures at 8 a second, numbered from `first` on. Each has its `colour_of`, and a bar
/// that moves.
inline std::string make_video(int frames, const std::function<Colour(int)>& colour_of,
                              media::EncodeOptions options = {.width = 64, .height = 48},
                              int first = 0) {
  options.time_base = {1, 8};
  options.frame_rate = {8, 1};
  media::VideoEncoder encoder(options);
  for (int i = first; i < first + frames; ++i) {
    media::RgbImage image = plain_image(colour_of(i), options.width, options.height);
    for (int y = 8; y < options.height - 8; ++y)
      std::fill_n(image.pixels.begin() + 3 * (y * options.width + i % (options.width - 8)), 24,
                  std::uint8_t{240});
    encoder.add(image, i - first);
  }
  return encoder.finish();
}
inline std::string make_video(int frames, Colour colour) {
  return make_video(frames, [=](int) { return colour; });
}
inline constexpr Colour kRed{200, 30, 30}, kGreen{30, 180, 40}, kBlue{30, 40, 200};

inline void write_tar(const std::string& path, const std::vector<shard::Sample>& samples) {
  shard::Writer writer(path);
  for (const shard::Sample& sample : samples)
    writer.add(sample);
  writer.finish();
}

/// By another program: samples need not have the same members.
inline void write_foreign_tar(const std::string& path, const std::vector<shard::Sample>& samples) {
  std::string tar;
  for (const shard::Sample& sample : samples)
    for (const shard::Member& member : sample.members) {
      std::string head(512, '\0');
      const auto put = [&](std::size_t at, const std::string& field) {
        head.replace(at, field.size(), field);
      };
      put(0, sample.key + "." + member.extension);
      put(100, "0000644");
      char size[16];
      std::snprintf(size, sizeof size, "%011zo", member.data.size());
      put(124, size);
      put(136, "00000000000");
      put(148, "        ");
      put(156, "0");
      put(257, std::string("ustar\00000", 8));
      unsigned sum = 0;
      for (const char c : head)
        sum += static_cast<unsigned char>(c);
      std::snprintf(size, sizeof size, "%06o", sum);
      put(148, std::string(size, 7));
      tar += head + member.data;
      tar.resize((tar.size() + 511) / 512 * 512);
    }
  std::ofstream(path, std::ios::binary) << tar << std::string(1024, '\0');
}

inline std::vector<shard::Sample> samples_of(const std::string& tar) {
  std::vector<shard::Sample> samples;
  shard::for_each_sample(tar, [&](shard::Sample& sample) { samples.push_back(sample); });
  return samples;
}

/// The json of each sample, by key.
inline std::map<std::string, Json> jsons_of(const std::string& tar) {
  std::map<std::string, Json> found;
  for (const shard::Sample& sample : samples_of(tar))
    found[sample.key] = parse_json(*sample.find("json"), sample.key);
  return found;
}

/// A CLIP of 12 numbers, with both parts and a tokenizer.
inline std::string make_clip_model(const std::string& folder) {
  const std::string golden = VFM_GOLDEN;
  std::filesystem::copy(golden + "/sentences/clip", folder);
  std::string settings = io::read_file(golden + "/picture_encoders/clip/preprocessor_config.json");
  for (std::size_t at; (at = settings.find("24")) != settings.npos;)
    settings.replace(at, 2, "8");
  std::ofstream(folder + "/preprocessor_config.json") << settings;
  return folder;
}

/// The lines of a file of errors, none where there is no file.
inline std::vector<Json> errors_in(const std::string& path) {
  std::vector<Json> found;
  if (!io::file_exists(path)) return found;
  const std::string text = io::read_file(path);
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    found.push_back(parse_json(text.substr(at, end - at), path));
  }
  return found;
}

}  // namespace vfm::columns
