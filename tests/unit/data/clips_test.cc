// Clips of a dataset as training reads them: squares at places that depend on step and key alone.
// SPDX-License-Identifier: Apache-2.0
#include "data/clips.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "media/container/picture_file.h"
#include "shard/dataset_meta.h"
#include "shard/sample_list.h"
#include "shard/writer.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::data;
namespace fs = std::filesystem;

namespace {

constexpr int kWidth = 96, kHeight = 64;

/// Red grows by 2 a column, green by 3 a row.
std::string picture() {
  media::RgbImage image{kWidth, kHeight, {}};
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      for (const int value : {2 * x, 3 * y, 7})
        image.pixels.push_back(static_cast<std::uint8_t>(value));
  return media::encode_png(image);
}

/// What vfm-shard leaves: a shard of pictures for training, one for validation.
struct Dataset {
  TemporaryFolder folder;
  const std::string& path = folder.path;

  Dataset() {
    Json shards = Json::array();
    for (const std::string split : {"train", "val"}) {
      const std::string stem = split + "/a/a-000000";
      fs::create_directories(path + "/" + split + "/a");
      shard::Writer writer(path + "/" + stem + ".tar");
      for (const std::string key : {"one", "two", "bad"})
        writer.add(shard::Sample{
            split + "-" + key, {{"png", key == "bad" ? "no picture" : picture()}, {"json", "{}"}}});
      Json notes = writer.finish();
      notes["split"] = split;
      io::write_file(path + "/" + stem + ".json", dump_json(notes));
      shards.push_back({{"path", stem + ".tar"}});
    }
    io::write_file(path + "/plan.json", dump_json({{"shards", shards}}));
    io::write_file(path + "/dataset.json", "{}");
  }
};

PixelOptions square(int side, int shorter = 0) {
  PixelOptions options;
  options.square = side, options.shorter_side = shorter;
  options.crop = CropMode::random;
  return options;
}

}  // namespace

TEST_CASE("the clips of a split are listed without decoding them") {
  const Dataset dataset;
  const ClipSet train(dataset.path, "train"), val(dataset.path, "val");
  REQUIRE(train.clips().size() == 3);
  CHECK(train.clips()[1].key == "train-two");
  CHECK(train.clips()[1].row == 1);
  CHECK(train.clips()[1].still);
  CHECK(val.clips()[0].key == "val-one");
  CHECK(train.info() != val.info());
  CHECK(ClipSet(dataset.path, "test").clips().empty());
  CHECK_THROWS_WITH(train.read(2, square(16)), Catch::Contains("train-bad"));
  fs::remove(dataset.path + "/dataset.json");
  CHECK_THROWS_WITH(ClipSet(dataset.path, "train"), Catch::Contains("not a finished dataset"));
}

TEST_CASE("a dataset is the same under any spelling of its folder") {
  const Dataset dataset;
  fs::create_directory_symlink(dataset.path, dataset.path + "/link");
  const Json info = ClipSet(dataset.path, "train").info();
  CHECK(info["clips"][0]["path"] == "train/a/a-000000.tar");
  CHECK(ClipSet(dataset.path + "/", "train").info() == info);
  CHECK(ClipSet(dataset.path + "//", "train").info() == info);
  CHECK(ClipSet(dataset.path + "/link", "train").info() == info);
  const fs::path before = fs::current_path();
  fs::current_path(dataset.path);
  const Json from_inside = ClipSet(".", "train").info();
  fs::current_path(before);
  CHECK(from_inside == info);
}

TEST_CASE("a dataset has the splits that its shards are of") {
  const Dataset dataset;
  CHECK(ClipSet::has_split(dataset.path, "val"));
  CHECK_FALSE(ClipSet::has_split(dataset.path, "test"));
  io::write_file(dataset.path + "/dataset.json",
                 R"({"splits": {"train": {"samples": 3}, "val": {"samples": 0}}})");
  CHECK(ClipSet::has_split(dataset.path, "train"));
  CHECK_FALSE(ClipSet::has_split(dataset.path, "val"));
  CHECK_FALSE(ClipSet::has_split(dataset.path, "test"));
}

TEST_CASE("clips by the list of a dataset's samples are those of its shards' indexes") {
  const Dataset dataset;
  const std::string list = shard::sample_list_path(dataset.path);
  std::map<std::string, std::string> hashes;
  for (const std::string split : {"train", "val"}) {
    const std::string notes = dataset.path + "/" + split + "/a/a-000000.json";
    hashes[split] = parse_json(io::read_file(notes), notes)["xxh3"].get<std::string>();
  }
  const auto write_list = [&](const std::vector<std::string>& splits) {
    shard::SampleListWriter writer(list);
    for (const std::string& split : splits) {
      const std::string tar = split + "/a/a-000000.tar";
      shard::for_each_indexed(dataset.path + "/" + tar,
                              [&](const shard::IndexedSample& sample) { writer.add(sample); });
      writer.add(shard::DatasetShard{tar, split, 3, 0, hashes[split]});
    }
    writer.finish();
  };
  const ClipSet by_shards(dataset.path, "val");
  write_list({"train", "val"});
  // The list is what is read, and not what each shard has.
  for (const std::string split : {"train", "val"})
    fs::remove(dataset.path + "/" + split + "/a/a-000000.json");
  const ClipSet by_list(dataset.path, "val");
  CHECK(by_list.info() == by_shards.info());
  REQUIRE(by_list.clips().size() == by_shards.clips().size());
  for (std::size_t i = 0; i < by_list.clips().size(); ++i) {
    const StoredClip &one = by_list.clips()[i], &other = by_shards.clips()[i];
    CHECK(one.key == other.key);
    CHECK(one.row == other.row);
    CHECK(one.bytes == other.bytes);
    CHECK(one.still == other.still);
  }
  CHECK(by_list.read(1, square(16)).pixels == by_shards.read(1, square(16)).pixels);
  write_list({"train"});
  CHECK_THROWS_WITH(ClipSet(dataset.path, "train"), Catch::Contains("all shards of the plan"));
  write_list({"val", "train"});
  CHECK_THROWS_WITH(ClipSet(dataset.path, "train"), Catch::Contains("it is of another plan"));
}

TEST_CASE("a square is cut out at a place that step and key decide") {
  const Dataset dataset;
  const ClipSet set(dataset.path, "train");
  PixelOptions options = square(32);
  const ClipPixels a = set.read(0, options);
  CHECK(a.frames == 1);
  CHECK(a.width == 32);
  CHECK(a.height == 32);
  CHECK(a.crop[2] == 32);
  CHECK(set.read(0, options).pixels == a.pixels);
  // Pixels of the picture as it is: red tells the column.
  CHECK(std::lround((a.pixels[0] + 1) * 127.5) == Approx(2 * a.crop[0]).margin(1));
  CHECK(std::lround((a.pixels[1024] + 1) * 127.5) == Approx(3 * a.crop[1]).margin(1));
  CHECK(set.read(1, options).crop != a.crop);
  options.step = 1;
  const ClipPixels later = set.read(0, options);
  CHECK(later.crop != a.crop);
  options.again = 1;
  CHECK(set.read(0, options).crop != later.crop);
  options.crop = CropMode::centre;
  CHECK(set.read(0, options).crop == std::array<int, 4>{32, 16, 32, 32});
}

TEST_CASE("a square of a picture that is shrunk before, or enlarged to hold it") {
  const Dataset dataset;
  const ClipSet set(dataset.path, "train");
  CHECK(set.read(0, square(16, 32)).crop[2] == 32);   // half of the picture's height
  CHECK(set.read(0, square(32, 32)).crop[2] == 64);   // all of it
  CHECK(set.read(0, square(32, 999)).crop[2] == 32);  // never enlarged for that
  const ClipPixels large = set.read(0, square(128));
  CHECK(large.crop[2] == 64);
  CHECK(large.width == 128);
}
