// GGUF files that are damaged, or made to do damage.
// SPDX-License-Identifier: Apache-2.0
#include "io/gguf.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "base/error.h"

using namespace vfm;
using namespace vfm::io;

namespace {

/// Writes a file piece by piece.
struct Bytes {
  std::string all;
  template <class T>
  Bytes& number(T value) {
    char room[sizeof value];
    std::memcpy(room, &value, sizeof value);
    all.append(room, sizeof value);
    return *this;
  }
  Bytes& text(const std::string& value) {
    number<std::uint64_t>(value.size());
    all += value;
    return *this;
  }
  Bytes& head(std::uint64_t tensors, std::uint64_t settings, std::uint32_t version = 3) {
    all += "GGUF";
    return number(version).number(tensors).number(settings);
  }
  Bytes& tensor(const std::string& name, std::vector<std::uint64_t> dims, std::uint32_t type,
                std::uint64_t offset) {
    text(name).number<std::uint32_t>(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t size : dims)
      number(size);
    return number(type).number(offset);
  }
  Bytes& data(std::size_t count, std::size_t alignment = 32) {
    all.resize((all.size() + alignment - 1) / alignment * alignment);
    all.append(count, 'x');
    return *this;
  }
};

GgufContents parse(const Bytes& bytes) {
  return parse_gguf(std::as_bytes(std::span(bytes.all)), "it");
}
std::string refused(const Bytes& bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}
Bytes one_tensor(std::vector<std::uint64_t> dims, std::uint32_t type, std::uint64_t offset,
                 std::size_t size) {
  return Bytes().head(1, 0).tensor("a", std::move(dims), type, offset).data(size);
}

}  // namespace

TEST_CASE("the settings and tensors of a GGUF file are read") {
  Bytes bytes;
  bytes.head(2, 5, 2);
  bytes.text("general.architecture").number(std::uint32_t{8}).text("qwen2vl");
  bytes.text("general.alignment").number(std::uint32_t{4}).number(std::uint32_t{64});
  bytes.text("less").number(std::uint32_t{1}).number(std::int8_t{-3});
  bytes.text("list").number(std::uint32_t{9}).number(std::uint32_t{8}).number(std::uint64_t{2});
  bytes.text("xyz").text("");
  bytes.text("numbers").number(std::uint32_t{9}).number(std::uint32_t{6}).number(std::uint64_t{1});
  bytes.number(1.5f);
  bytes.tensor("a", {32, 3}, 8, 128).tensor("b", {5}, 0, 0).data(128 + 3 * 34, 64);
  const GgufContents contents = parse(bytes);
  CHECK(contents.texts.at("general.architecture") == "qwen2vl");
  CHECK(contents.counts.at("less") == -3);
  CHECK(contents.lists.at("list").texts("it") == std::vector<std::string_view>{"xyz", ""});
  CHECK(contents.lists.at("numbers").floats("it") == std::vector<float>{1.5F});
  CHECK_THROWS_AS(contents.lists.at("numbers").texts("it"), Error);
  CHECK_THROWS_AS(contents.lists.at("numbers").integers("it"), Error);
  REQUIRE(contents.tensors.size() == 2);
  CHECK(contents.tensors[0].shape == std::vector<std::int64_t>{3, 32});
  CHECK(contents.tensors[0].dtype == "Q8_0");
  CHECK(contents.tensors[0].data.size() == 3 * 34);
  CHECK(contents.tensors[1].data.size() == 20);
  CHECK(contents.tensors[0].data.data() - contents.tensors[1].data.data() == 128);
  // However it is cut off.
  for (std::size_t size = 0; size < bytes.all.size(); ++size) {
    const Bytes cut{bytes.all.substr(0, size)};
    INFO(size);
    CHECK_FALSE(refused(cut).empty());
  }
}

TEST_CASE("a GGUF tensor has the shape that a setting gives it") {
  const auto shaped = [](std::vector<std::int32_t> shape, std::uint32_t type = 5) {
    Bytes bytes;
    bytes.head(1, 1).text("comfy.gguf.orig_shape.a").number(std::uint32_t{9}).number(type);
    bytes.number<std::uint64_t>(shape.size());
    for (const std::int32_t size : shape)
      bytes.number(size);
    return bytes.tensor("a", {32, 3}, 8, 0).data(3 * 34);
  };
  const TensorView tensor = parse(shaped({3, 2, 1, 4, 4})).tensors.at(0);
  CHECK(tensor.shape == std::vector<std::int64_t>{3, 2, 1, 4, 4});
  CHECK(tensor.data.size() == 3 * 34);
  const std::vector<std::vector<std::int32_t>> wrong = {
      {3, 31}, {-3, -32}, {0, 32}, {1 << 30, 1 << 30, 1 << 30}};
  for (const std::vector<std::int32_t>& shape : wrong)
    CHECK_THAT(refused(shaped(shape)), Catch::Contains("has not the numbers of the shape"));
  CHECK_THAT(refused(shaped({})), Catch::Contains("has not the numbers of the shape"));
  CHECK_THAT(refused(shaped({1, 1, 1, 1, 3, 32})), Catch::Contains("has not the numbers"));
  CHECK_THAT(refused(shaped({3, 32}, 6)), Catch::Contains("type 6, 5 is needed"));
}

TEST_CASE("GGUF files that are impossible or not supported are refused") {
  CHECK(refused(one_tensor({32, 2}, 8, 0, 68)).empty());
  CHECK_THAT(refused(Bytes{"GGML" + std::string(30, '\0')}), Catch::Contains("no GGUF file"));
  CHECK_THAT(refused(Bytes().head(0, 0, 1)), Catch::Contains("version 1"));
  CHECK_THAT(refused(Bytes().head(0, 0, 0x03000000)), Catch::Contains("little endian"));
  CHECK_THAT(refused(Bytes().head(1ull << 60, 0)), Catch::Contains("tensors, over 65536"));
  CHECK_THAT(refused(Bytes().head(0, 1ull << 60)), Catch::Contains("settings, over 65536"));
  CHECK_THAT(refused(one_tensor({33, 2}, 8, 0, 68)), Catch::Contains("not a multiple of 32"));
  CHECK_THAT(refused(one_tensor({256}, 11, 0, 200)), Catch::Contains("is Q3_K, which is not"));
  CHECK_THAT(refused(one_tensor({256}, 4, 0, 200)), Catch::Contains("is type 4, which is not"));
  CHECK_THAT(refused(one_tensor({256}, 1000, 0, 200)), Catch::Contains("is type 1000"));
  CHECK_THAT(refused(one_tensor({32, 2}, 8, 16, 200)), Catch::Contains("multiple of 32"));
  CHECK_THAT(refused(one_tensor({32, 2}, 8, 32, 68)), Catch::Contains("beyond its end"));
  CHECK_THAT(refused(one_tensor({32, 2}, 8, ~std::uint64_t{31}, 68)), Catch::Contains("beyond"));
  CHECK_THAT(refused(one_tensor({32, 0}, 8, 0, 68)), Catch::Contains("a shape that is none"));
  CHECK_THAT(refused(one_tensor({1ull << 40, 1ull << 40}, 0, 0, 68)), Catch::Contains("shape"));
  CHECK_THAT(refused(one_tensor({1ull << 40, 1ull << 23}, 0, 0, 68)), Catch::Contains("too large"));
  CHECK_THAT(refused(one_tensor({}, 0, 0, 68)), Catch::Contains("has 0 dimensions"));
  CHECK_THAT(refused(one_tensor({1, 1, 1, 1, 1, 1}, 0, 0, 68)), Catch::Contains("6 dimensions"));
  CHECK_THAT(refused(Bytes().head(2, 0).tensor("a", {32}, 0, 0).tensor("b", {8}, 0, 96).data(200)),
             Catch::Contains("'a' and 'b' of it lie over each other"));
  const auto setting = [](std::uint32_t type) { return Bytes().head(0, 1).text("s").number(type); };
  CHECK_THAT(refused(setting(13).number(0)), Catch::Contains("type 13, which is unknown"));
  CHECK_THAT(refused(setting(9).number(std::uint32_t{9}).number(std::uint64_t{1})),
             Catch::Contains("type 9"));
  CHECK_THAT(refused(setting(9).number(std::uint32_t{10}).number(std::uint64_t{1} << 61)),
             Catch::Contains("list 's' of it is cut off"));
  CHECK_THAT(refused(setting(8).number(~std::uint64_t{0})), Catch::Contains("cut off"));
  Bytes twice;
  twice.head(0, 2);
  for (int i = 0; i < 2; ++i)
    twice.text("s").number(std::uint32_t{0}).number(std::uint8_t{1});
  CHECK_THAT(refused(twice), Catch::Contains("'s' twice"));
  Bytes aligned;
  aligned.head(0, 1).text("general.alignment").number(std::uint32_t{4}).number(std::uint32_t{0});
  CHECK_THAT(refused(aligned), Catch::Contains("the alignment 0"));
}
