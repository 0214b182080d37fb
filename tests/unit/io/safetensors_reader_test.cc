// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors_reader.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "io/safetensors.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;

namespace {

using Sizes = std::vector<std::int64_t>;

/// A set of three tensors of 16-bit numbers 0, 1, 2, ... in as many files.
struct Numbers {
  Numbers() {
    std::iota(values.begin(), values.end(), std::uint16_t{0});
    const auto view = [this](const char* name, Sizes shape) {
      TensorView tensor{name, "I16", std::move(shape), {}};
      tensor.data = std::as_bytes(std::span(values)).first(tensor.bytes());
      return tensor;
    };
    write_safetensors(folder.path, "m",
                      {view("box", {3, 4, 5, 2}), view("rows", {6, 7}), view("one", {})}, 90);
  }
  TemporaryFolder folder;
  std::vector<std::uint16_t> values = std::vector<std::uint16_t>(120);
};

/// The elements of a box of a tensor that holds 0, 1, 2, ..., by walking over all of it.
std::vector<std::uint16_t> expected(const TensorRange& range) {
  std::vector<std::uint16_t> found;
  const std::int64_t all = TensorRange::whole(range.shape).elements();
  for (std::int64_t at = 0; at < all; ++at) {
    bool inside = true;
    std::int64_t rest = at;
    for (std::size_t d = range.shape.size(); d-- > 0; rest /= range.shape[d]) {
      const std::int64_t i = rest % range.shape[d];
      inside = inside && i >= range.offset[d] && i < range.offset[d] + range.length[d];
    }
    if (inside) found.push_back(static_cast<std::uint16_t>(at));
  }
  return found;
}

std::vector<std::uint16_t> read(const SafetensorsReader& reader, const char* name,
                                const TensorRange& range, std::int64_t begin, std::int64_t count) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count), 0xffff);
  reader.read(name, range, begin, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

TEST_CASE("safetensors reader: every box of a tensor, whole and in pieces") {
  const Numbers numbers;
  const SafetensorsReader reader(numbers.folder.path, "m");
  CHECK(reader.tensors().size() == 3);
  CHECK(reader.find("box")->data.empty());
  const Sizes shape = {3, 4, 5, 2};
  const int dims = 4;
  int boxes = 0;
  // By dim all, the first, the last, one in the middle, or nothing.
  for (int choice = 0; choice < 5 * 5 * 5 * 5; ++choice) {
    TensorRange range = TensorRange::whole(shape);
    for (int d = 0, rest = choice; d < dims; ++d, rest /= 5) {
      const auto dim = static_cast<std::size_t>(d);
      const std::int64_t size = shape[dim];
      const std::pair<std::int64_t, std::int64_t> parts[] = {
          {0, size}, {0, 1}, {size - 1, 1}, {size / 2, size - size / 2}, {1, 0}};
      std::tie(range.offset[dim], range.length[dim]) = parts[rest % 5];
    }
    const std::vector<std::uint16_t> all = expected(range);
    const auto count = static_cast<std::int64_t>(all.size());
    REQUIRE(range.elements() == count);
    for (std::int64_t at = 0; at <= 121; ++at)
      if (range.elements_before(at) !=
          std::ranges::count_if(all, [&](std::int64_t value) { return value < at; }))
        FAIL("elements before " << at << " of box " << choice);
    const std::uint64_t before = reader.bytes_read();
    REQUIRE(read(reader, "box", range, 0, count) == all);
    REQUIRE(reader.bytes_read() - before == 2 * all.size());  // and nothing else
    for (std::int64_t begin = 0; begin < count; begin += 7) {
      const std::int64_t piece = std::min<std::int64_t>(7, count - begin);
      REQUIRE(read(reader, "box", range, begin, piece) ==
              std::vector<std::uint16_t>(all.begin() + begin, all.begin() + begin + piece));
    }
    ++boxes;
  }
  CHECK(boxes == 625);
  CHECK(read(reader, "rows", TensorRange::part({6, 7}, 0, 2, 3), 0, 21).front() == 14);
  CHECK(read(reader, "rows", TensorRange::part({6, 7}, 1, 5, 2), 2, 2) ==
        std::vector<std::uint16_t>{12, 13});
  CHECK(read(reader, "one", TensorRange::whole({}), 0, 1) == std::vector<std::uint16_t>{0});
}

TEST_CASE("safetensors reader: what cannot be read is named") {
  const Numbers numbers;
  const SafetensorsReader reader(numbers.folder.path, "m");
  const auto whole = TensorRange::whole({6, 7});
  CHECK_THROWS_WITH(read(reader, "cows", whole, 0, 1), Catch::Contains("has no tensor 'cows'"));
  CHECK_THROWS_WITH(read(reader, "rows", TensorRange::whole({7, 6}), 0, 1),
                    Catch::Contains("'rows'") && Catch::Contains("has not the shape"));
  CHECK_THROWS_WITH(read(reader, "rows", whole, 40, 3), Catch::Contains("has not the elements"));
  CHECK_THROWS_WITH(read(reader, "rows", whole, -1, 3), Catch::Contains("has not the elements"));
  std::byte odd[3];
  CHECK_THROWS_WITH(reader.read("rows", whole, 0, odd), Catch::Contains("has not the elements"));
  TensorRange outside = whole;
  outside.offset[1] = 1;
  CHECK_THROWS_WITH(read(reader, "rows", outside, 0, 1), Catch::Contains("does not lie within it"));
  CHECK_THROWS_WITH(TensorRange::part({6, 7}, 0, 4, 3),
                    "3 from 4 on do not lie within the 6 of dim 0");
  CHECK_THROWS_AS(TensorRange::part({6, 7}, 2, 0, 1), Error);

  // Cut off while it is open, and before.
  const std::string file =
      reader.path().substr(0, reader.path().rfind('/')) + "/m-00002-of-00002.safetensors";
  REQUIRE(reader.find("rows") != nullptr);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  CHECK_THROWS_WITH(read(reader, "rows", whole, 0, 42), Catch::Contains("is truncated"));
  CHECK_THROWS_WITH(SafetensorsReader(numbers.folder.path, "m"), Catch::Contains("is truncated"));
  std::filesystem::remove(file);
  CHECK_THROWS_WITH(SafetensorsReader(numbers.folder.path, "m"), Catch::Contains("cannot open"));
  CHECK_THROWS_WITH(SafetensorsReader(numbers.folder.path, "n"), Catch::Contains("n.safetensors"));
}

TEST_CASE("safetensors: the plan depends on the tensors alone, whatever their order") {
  const auto tensor = [](const char* name, std::int64_t size) {
    return TensorView{name, "F32", {size}, {}};
  };
  std::vector<TensorView> tensors = {tensor("a", 10), tensor("b", 30), tensor("c", 200),
                                     tensor("d", 5), tensor("e", 5)};
  std::vector<std::vector<std::string>> names;
  for (int turn = 0; turn < 5; ++turn) {
    std::rotate(tensors.begin(), tensors.begin() + 1, tensors.end());
    const SafetensorsPlan plan = plan_safetensors("m", tensors, 160);
    std::vector<std::vector<std::string>> found;
    for (const SafetensorsFile& file : plan.files) {
      found.emplace_back();
      for (const TensorView& view : file.tensors)
        found.back().push_back(view.name);
    }
    if (turn == 0) names = found;
    CHECK(found == names);
  }
  CHECK(names == std::vector<std::vector<std::string>>{{"a", "b"}, {"c"}, {"d", "e"}});
  CHECK(plan_safetensors("m", tensors, 160).files[1].bytes() == 800);
}

TEST_CASE("safetensors: a file is written in pieces, and its hash is known then") {
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> large(3 * kMostOfPiece / 2 + 5, 7);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
  const auto fetch = [&](const TensorView& view, std::uint64_t begin, std::uint64_t end) {
    if (view.name == "large") pieces.emplace_back(begin, end);
    return std::as_bytes(std::span(large)).subspan(begin, end - begin);
  };
  const SafetensorsFile file{"m.safetensors",
                             {{"large", "U8", {static_cast<std::int64_t>(large.size())}, {}},
                              {"none", "F32", {0, 3}, {}},
                              {"small", "F32", {2}, {}}}};
  const std::string hash = write_safetensors_file(folder.path, file, fetch, {{"key", "value"}});
  CHECK(hash == hash_file(folder / "m.safetensors"));
  CHECK(pieces == std::vector<std::pair<std::uint64_t, std::uint64_t>>{
                      {0, kMostOfPiece}, {kMostOfPiece, large.size()}});
  const SafetensorsSet set(folder.path, "m");
  CHECK(set.metadata().at("key") == "value");
  CHECK(std::memcmp(set.find("large")->data.data(), large.data(), large.size()) == 0);
  CHECK(set.find("none")->data.empty());
  CHECK_THROWS_WITH(write_safetensors_file(folder.path, file), Catch::Contains("'large'"));

  SafetensorsWriter out(folder.path, {"n.safetensors", {{"small", "F32", {2}, {}}}});
  const std::vector<std::byte> bytes(9);
  out.write(std::span(bytes).first(3));
  CHECK_THROWS_WITH(out.finish(), Catch::Contains("n.safetensors' lacks 5 bytes"));
  CHECK_THROWS_WITH(out.write(bytes), Catch::Contains("n.safetensors' gets 4 bytes more"));
  CHECK_FALSE(std::filesystem::exists(folder / "n.safetensors"));
  out.write(std::span(bytes).first(5));
  const std::string finished = out.finish();
  CHECK(finished == hash_file(folder / "n.safetensors"));
}
