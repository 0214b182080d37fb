// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// A file of this header text and `data` zero bytes.
std::string file_of(const std::string& header, std::size_t data) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    file[i] = static_cast<char>(header.size() >> 8 * i);
  return file + header + std::string(data, '\0');
}

std::string error_of(const std::string& file) {
  try {
    parse_safetensors(bytes_of(file), "'x'");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TensorView view(const std::string& name, const std::vector<float>& values,
                std::vector<std::int64_t> shape) {
  return {name, "F32", std::move(shape), std::as_bytes(std::span(values))};
}

}  // namespace

TEST_CASE("safetensors: a file written by another library is read") {
  // The layout that safetensors.numpy.save({"b": [[1,2,3]] f32, "a": [7] i64}) writes: i64 first.
  std::string file = file_of(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"F32","shape":[1,3],"data_offsets":[8,20]}}   )",
      0);
  const std::int64_t seven = 7;
  const float values[] = {1, 2, 3};
  file.append(reinterpret_cast<const char*>(&seven), 8);
  file.append(reinterpret_cast<const char*>(values), 12);
  const auto contents = parse_safetensors(bytes_of(file), "'x'");
  REQUIRE(contents.tensors.size() == 2);
  CHECK(contents.metadata.at("format") == "pt");
  CHECK(contents.tensors[1].name == "b");
  CHECK(contents.tensors[1].shape == std::vector<std::int64_t>{1, 3});
  CHECK(std::memcmp(contents.tensors[1].data.data(), values, 12) == 0);
}

TEST_CASE("safetensors: what the format forbids is refused by name") {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  CHECK(error_of(file_of("{" + a + "}", 8)) == "accepted");
  CHECK(error_of(file_of("{}", 0)) == "accepted");
  CHECK(error_of("short") == "'x' is not a safetensors file: it is shorter than 8 bytes");
  CHECK(error_of(std::string(8, '\xff') + "{}").find("bytes long") != std::string::npos);
  CHECK(error_of(std::string("\x09\0\0\0\0\0\0\0{}", 10)) == "'x' is truncated in its header");
  CHECK(error_of(file_of("[1]", 0)).find("no JSON header") != std::string::npos);
  CHECK(error_of(file_of("{\"a\":", 0)) == "the header of 'x' is not JSON");
  CHECK(error_of(file_of("{" + a + "," + a + "}", 8)) == "the header of 'x' names 'a' twice");
  CHECK(error_of(file_of("{" + a + "}", 7)).find("truncated") != std::string::npos);
  CHECK(error_of(file_of("{" + a + "}", 9)) == "'x' has 1 bytes after its last tensor");
  const auto entry = [](const char* dtype, const char* shape, const char* offsets) {
    return file_of(fmt::format(R"({{"a":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype,
                               shape, offsets),
                   8);
  };
  CHECK(error_of(entry("F33", "[2]", "[0,8]")).find("'F33'") != std::string::npos);
  CHECK(error_of(entry("F32", "[3]", "[0,8]")).find("12 bytes by its shape") != std::string::npos);
  CHECK(error_of(entry("F32", "[-2]", "[0,8]")).find("whole number") != std::string::npos);
  CHECK(error_of(entry("F32", "[2.0]", "[0,8]")).find("whole number") != std::string::npos);
  CHECK(error_of(entry("F32", "[4294967296,4294967296,4]", "[0,8]")).find("too large") !=
        std::string::npos);
  CHECK(error_of(entry("F32", "2", "[0,8]")).find("proper shape") != std::string::npos);
  CHECK(error_of(entry("F32", "[2]", "[8,0]")).find("offsets 8 to 0") != std::string::npos);
  CHECK(error_of(entry("F32", "[2]", "[0,8,9]")).find("data_offsets") != std::string::npos);
  CHECK(error_of(entry("U8", "[4]", "[4,8]")).find("begins at 4") != std::string::npos);
  CHECK(error_of(file_of(R"({"__metadata__":{"n":1}})", 0)).find("not a string") !=
        std::string::npos);
  CHECK(error_of(file_of(std::string(5000, '{'), 0)).find("the header of 'x'") !=
        std::string::npos);
}

TEST_CASE("safetensors: overlaps and holes are refused") {
  const auto two = [](int begin, int end) {
    return file_of(fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}},)"
                               R"("b":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}}})",
                               end - begin, begin, end),
                   8);
  };
  CHECK(error_of(two(4, 8)) == "accepted");
  CHECK(error_of(two(2, 8)).find("begins at 2") != std::string::npos);
  CHECK(error_of(two(5, 8)).find("begins at 5") != std::string::npos);
  CHECK(error_of(two(4, 4)).find("4 bytes after") != std::string::npos);
}

TEST_CASE("safetensors: round trip, deterministic bytes, aligned data") {
  const TemporaryFolder folder;
  const std::vector<float> one = {1.5f, -0.f}, two = {2, 3, 4, 5, 6, 7};
  const auto a = view("z.weight", one, {2}), b = view("a.weight", two, {2, 3});
  CHECK(write_safetensors(folder.path, "m", {a, b}) == std::vector<std::string>{"m.safetensors"});
  const std::string first = read_file(folder.path + "/m.safetensors");
  write_safetensors(folder.path, "m", {b, a});
  CHECK(read_file(folder.path + "/m.safetensors") == first);
  CHECK((first.size() - 32) % 64 == 0);

  const SafetensorsSet set(folder.path, "m");
  REQUIRE(set.tensors().size() == 2);
  REQUIRE(set.find("z.weight") != nullptr);
  CHECK(set.find("nothing") == nullptr);
  CHECK(std::memcmp(set.find("z.weight")->data.data(), one.data(), 8) == 0);
  CHECK(set.find("a.weight")->shape == std::vector<std::int64_t>{2, 3});
}

TEST_CASE("safetensors: above a size the set is sharded, with an index") {
  const TemporaryFolder folder;
  const std::vector<float> values(16, 1.0f);
  std::vector<TensorView> tensors;
  for (int i = 0; i < 5; ++i)
    tensors.push_back(view("t" + std::to_string(i), values, {16}));
  const auto files = write_safetensors(folder.path, "m", tensors, 128);
  CHECK(files ==
        std::vector<std::string>{"m-00001-of-00003.safetensors", "m-00002-of-00003.safetensors",
                                 "m-00003-of-00003.safetensors", "m.safetensors.index.json"});
  CHECK(SafetensorsSet(folder.path, "m").tensors().size() == 5);
  const Json index = parse_json(read_file(folder.path + "/m.safetensors.index.json"), "index");
  CHECK(index["metadata"]["total_size"] == 320);
  CHECK(index["weight_map"]["t4"] == "m-00003-of-00003.safetensors");

  std::filesystem::remove(folder.path + "/m-00002-of-00003.safetensors");
  CHECK_THROWS_AS(SafetensorsSet(folder.path, "m"), Error);
  CHECK_FALSE(SafetensorsSet::exists(folder.path, "n"));
}
