// Runs the library of vfm-clip on drawn videos, and reads what it wrote.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "clip/clip.h"
#include "io/file.h"
#include "io/manifest.h"
#include "shard/reader.h"
#include "share/slots.h"
#include "support/parts.h"
#include "support/temporary_folder.h"
#include "unit/curate/drawing.h"

namespace clip_run {

using vfm::Json;
using Lines = std::vector<std::string>;

/// A YUV4MPEG2 file; paint(frame, x, y) gives colours of limited range.
template <class Paint>
std::string y4m(int width, int height, int rate, int frames, Paint&& paint) {
  std::string file = "YUV4MPEG2 W" + std::to_string(width) + " H" + std::to_string(height) + " F" +
                     std::to_string(rate) + ":1 Ip A1:1 C420jpeg\n";
  for (int i = 0; i < frames; ++i) {
    const auto frame =
        drawing::frame(width, height, [&](int x, int y) -> drawing::Yuv { return paint(i, x, y); });
    file += "FRAME\n";
    for (int p = 0; p < 3; ++p)
      file.append(reinterpret_cast<const char*>(frame.plane[p]),
                  static_cast<std::size_t>(plane_rows(frame, p) * frame.stride[p]));
  }
  return file;
}

/// 64 x 48, ten frames a second: shots of so many frames, each of another texture that moves to
/// the left.
inline std::string shots(const std::vector<int>& lengths, std::uint64_t seed = 1) {
  std::vector<drawing::Texture> textures;
  std::vector<std::pair<std::size_t, int>> frames;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    textures.emplace_back(seed + s, 12, drawing::Yuv{30, 78, 78});
    for (int i = 0; i < lengths[s]; ++i)
      frames.emplace_back(s, i);
  }
  return y4m(64, 48, 10, static_cast<int>(frames.size()), [&](int i, int x, int y) {
    const auto [shot, number] = frames[static_cast<std::size_t>(i)];
    return textures[shot].at(x + number, y);
  });
}

/// A Windows bitmap of 64 x 48 pixels, drawn in RGB.
inline std::string drawn_bitmap(std::uint64_t seed) {
  const drawing::Texture texture(seed, 12, {40, 78, 78});
  std::string file(54, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i)
      file[at + i] = static_cast<char>(value >> (8 * i) & 255);
  };
  file[0] = 'B', file[1] = 'M', file[26] = 1, file[28] = 24;
  put(2, 54 + 3 * 64 * 48), put(10, 54), put(14, 40), put(18, 64), put(22, 48);
  for (int y = 47; y >= 0; --y)
    for (int x = 0; x < 64; ++x) {
      const drawing::Yuv colour = texture.at(x, y);
      for (const double value : {colour.u, colour.y, colour.v})
        file += static_cast<char>(std::lround(value));
    }
  return file;
}

/// Compares members, their order and values; numbers to five digits behind the point.
inline void check_same(const Json& got, const Json& wanted) {
  Lines names, wanted_names;
  for (const auto& [name, value] : wanted.items())
    wanted_names.push_back(name);
  for (const auto& [name, value] : got.items()) {
    names.push_back(name);
    if (!wanted.contains(name)) continue;
    INFO(name << " is " << vfm::dump_json(value) << ", not " << vfm::dump_json(wanted.at(name)));
    if (value.is_number_float() && wanted.at(name).is_number())
      CHECK(value.get<double>() == Approx(wanted.at(name).get<double>()).margin(2e-5));
    else
      CHECK(value == wanted.at(name));
  }
  CHECK(names == wanted_names);
}

/// The lines of a file of JSON Lines; none of a file that is not there.
inline std::vector<Json> json_lines(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    lines.push_back(vfm::parse_json(line, path));
  return lines;
}

/// A folder with sources, of which vfm-clip makes clips in out/.
struct ClipRun {
  vfm::TemporaryFolder folder;
  vfm::clip::ClipOptions options;
  std::vector<Json> records;

  ClipRun() {
    options.directory = folder / "out";
    options.recipe.min_seconds = 0;
  }
  /// A source, which is the last input.
  void source(const std::string& name, const std::string& bytes) {
    folder.write(name, bytes);
    options.inputs.push_back(folder / name);
  }
  template <class Verb>
  long run(Verb&& verb, int slot_count = 1) {
    vfm::share::Slots slots(slot_count);
    vfm::Progress progress;
    const std::string path = folder / "manifest";
    const vfm::io::File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666),
                             path);
    vfm::io::ManifestWriter manifest(file.fd());
    const long errors = verb(options, slots, progress, manifest);
    records = json_lines(path);
    return errors;
  }
  /// The number of errors.
  long run(int slot_count = 1) { return run(vfm::clip::run, slot_count); }

  /// The samples of the records.
  std::vector<vfm::shard::Sample> samples() const {
    std::vector<vfm::shard::Sample> all;
    for (const Json& record : records)
      vfm::shard::for_each_sample(record.at("path"),
                                  [&](vfm::shard::Sample& sample) { all.push_back(sample); });
    return all;
  }
  std::vector<Json> clips() const {
    std::vector<Json> all;
    for (const vfm::shard::Sample& sample : samples())
      all.push_back(vfm::parse_json(*sample.find("json"), sample.key));
    return all;
  }
  /// A field of each clip, as JSON in one line.
  std::string each(const char* field) const {
    std::string text;
    for (const Json& clip : clips())
      text += (text.empty() ? "" : " ") + vfm::dump_json(clip.value(field, Json("absent")));
    return text;
  }
  /// The only list of clips in out/.
  Json index() const {
    Json found;
    for (const auto& file : std::filesystem::directory_iterator(options.directory)) {
      const std::string path = file.path().string();
      const bool list = path.ends_with(".files") || path.ends_with(".json");
      const std::string name = file.path().stem().string();
      if (list && (name.size() == 16 || name.starts_with("joined-")))
        found = vfm::parse_json(vfm::io::read_file(path), path);
    }
    return found;
  }
  /// errors.jsonl as "INPUT: MESSAGE (CODE)", without the folder.
  Lines faults() const {
    Lines lines;
    for (const Json& fault : json_lines(options.directory + "/errors.jsonl")) {
      lines.push_back(fault.at("input").get<std::string>() + ": " +
                      fault.at("error").get<std::string>() + " (" +
                      fault.at("code").get<std::string>() + ")");
      lines.back() = vfm::replaced(lines.back(), folder.path + "/", "");
    }
    return lines;
  }
  /// The names of what is in out/, sorted.
  Lines files() const {
    Lines names;
    for (const auto& file : std::filesystem::directory_iterator(options.directory))
      names.push_back(file.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

}  // namespace clip_run
