// PyTorch's checkpoints, as torch.save wrote them (scripts/golden/torch_zip.py).
// SPDX-License-Identifier: Apache-2.0
#include "io/torch_zip.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "io/pickle.h"
#include "io/safetensors.h"
#include "io/zip.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;
using namespace std::string_literals;

namespace {

const std::string kFolder = std::string(VFM_GOLDEN) + "/torch";

std::string path_of(const char* name) {
  return kFolder + "/" + name;
}

std::string zip_error_of(const std::string& file) {
  try {
    TorchZip zip(path_of(file.c_str()));
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::span<const std::byte> raw_bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string pickle_error(const std::string& instructions) {
  try {
    parse_pickle(raw_bytes_of("\x80\x02" + instructions), "'x'");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

// That both sets hold the same, whatever the order.
void check_equal(const TensorSet& got, const TensorSet& expected) {
  CHECK(got.tensors().size() == expected.tensors().size());
  for (const TensorView& want : expected.tensors()) {
    INFO(want.name);
    const TensorView* found = got.find(want.name);
    REQUIRE(found != nullptr);
    CHECK(found->dtype == want.dtype);
    CHECK(found->shape == want.shape);
    REQUIRE(found->data.size() == want.data.size());
    CHECK(std::equal(want.data.begin(), want.data.end(), found->data.begin()));
  }
}

// Instructions that build a tensor from storage "0" of `elements` floats.
std::string tensor_of(int elements, const std::string& offset_shape_strides) {
  return std::string("ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\n") +
         std::string("U\x01") + "0U\x03" + "cpuK" + static_cast<char>(elements) + "tQ" +
         offset_shape_strides + "tR";
}

}  // namespace

TEST_CASE("torch zip: a state dict of every type, with views, is what safetensors says") {
  const TorchZip zip(path_of("state_dict.pt"));
  check_equal(zip, SafetensorsSet(kFolder, "state_dict"));
  CHECK(zip.tensors()[0].name == "f32");
  // A view of a storage is that part of the file, not a copy.
  CHECK(zip.find("shared")->data.data() == zip.find("f32")->data.data() + 6 * sizeof(float));
}

TEST_CASE(
    "torch zip: what is released is read again, and the end of a file that was cut is noticed") {
  const TemporaryFolder folder;
  const std::string file = folder / "copy.pt";
  std::filesystem::copy_file(path_of("state_dict.pt"), file);
  const TorchZip zip(file);
  for (const TensorView& tensor : zip.tensors())
    zip.release(tensor);
  check_equal(zip, SafetensorsSet(kFolder, "state_dict"));
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  CHECK_THROWS_WITH(zip.release(*zip.find("f32")), Catch::Contains("was cut to"));
}

TEST_CASE("torch zip: of a training checkpoint the model's tensors are read, and that is told") {
  static std::string told;
  told.clear();
  set_log_sink([](LogLevel, std::string_view text) { told += text; }, LogLevel::info);
  check_equal(TorchZip(path_of("training.pt")), SafetensorsSet(kFolder, "net"));
  CHECK_THAT(told, Catch::Contains("training.pt' only 'model' is read"));
  told.clear();
  TorchZip whole(path_of("state_dict.pt"));
  set_log_sink(nullptr, LogLevel::warning);
  CHECK(told.empty());
}

TEST_CASE("torch zip: a scripted module is its parameters and buffers") {
  check_equal(TorchZip(path_of("scripted.jit")), SafetensorsSet(kFolder, "net"));
}

TEST_CASE("torch zip: tensors in lists are named by their place") {
  const TorchZip zip(path_of("list.pt"));
  REQUIRE(zip.tensors().size() == 2);
  CHECK(zip.find("0")->elements() == 2);
  CHECK(zip.find("1.x.0")->elements() == 1);
}

TEST_CASE("torch zip: code is never run, what would need it is refused by name") {
  const std::string evil = zip_error_of("evil.pt");
  CHECK(evil.find("evil.pt' holds more than tensors: it names 'posix system'") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists("/tmp/vfm-code-was-run"));
  CHECK(zip_error_of("module.pt").find("it names '__main__ Net'") != std::string::npos);
  CHECK(
      zip_error_of("legacy.pt").find("the format of PyTorch before 1.6; read and write it once") !=
      std::string::npos);
  CHECK(zip_error_of("protocol4.pt").find("has protocol 4; only 2") != std::string::npos);
  CHECK(zip_error_of("expanded.pt").find("tensor 'x' of ") == 0);
  CHECK(zip_error_of("empty.pt").find("holds no tensors") != std::string::npos);
  CHECK(zip_error_of("state_dict.safetensors").find("is not a PyTorch checkpoint") !=
        std::string::npos);
  CHECK(zip_error_of("nothing.pt").find("cannot open") == 0);
  for (const char* global : {"os\nsystem\n", "builtins\neval\n", "torch\nload\n",
                             "__builtin__\ngetattr\n", "torch._utils\n_rebuild_tensor_v2 \n"})
    CHECK(pickle_error(std::string("c") + global + ".").find("it names '") != std::string::npos);
}

TEST_CASE("torch zip: instructions that do not fit together are refused") {
  CHECK(pickle_error("}U\x01x" + tensor_of(6, "K\0K\x06\x85K\x01\x85"s) + "s.") == "accepted");
  for (const std::string& instructions :
       {""s, "."s, "K"s, "}"s, "s."s, "}U\x01xs."s, "]U\x01xs."s, "u."s, "(t"s, "h\x05."s, "q"s,
        ")R."s,
        "U\x09"
        "abc."s,
        "X\xff\xff\xff\x7f"s, "\x8a\xff"s, "K\x01Q."s, "ctorch._utils\n_rebuild_tensor_v2\n)R."s,
        tensor_of(6, "K\0K\x06\x85)"s), tensor_of(6, "K\0K\x06K\x01"s)})
    CHECK(pickle_error(instructions).find("'x' is damaged") != std::string::npos);
  CHECK(pickle_error("c__torch__\nM\n)\x81.").find("holds no tensors") != std::string::npos);
  CHECK(pickle_error("\x95").find("instruction (0x95)") != std::string::npos);
  CHECK(pickle_error(tensor_of(6, "K\0K\x06\x85K\x01\x85"s) + ".").find("without a name") !=
        std::string::npos);
  // A list that holds itself, and lists of the same list twice, thirty deep.
  CHECK(pickle_error("]q\x01h\x01"
                     "a.")
            .find("nested too deep") != std::string::npos);
  std::string laughs = "]q\0"s;
  for (char i = 0; i < 30; ++i)
    laughs += std::string("](h") + i + "h" + i + "eq" + static_cast<char>(i + 1);
  CHECK(pickle_error(laughs + ".").find("nested too deep") != std::string::npos);
}

namespace {

// An archive of stored members, as torch.save lays it out, without checksums.
std::string zip_of(const std::vector<std::pair<std::string, std::string>>& members) {
  const auto number = [](std::size_t value, int size) {
    std::string bytes;
    for (int i = 0; i < size; ++i)
      bytes += static_cast<char>(value >> 8 * i);
    return bytes;
  };
  std::string file, directory;
  for (const auto& [name, data] : members) {
    const std::string sizes = number(0, 4) + number(data.size(), 4) + number(data.size(), 4) +
                              number(name.size(), 2) + number(0, 2);
    directory += "PK\x01\x02" + std::string(12, '\0') + sizes + std::string(10, '\0') +
                 number(file.size(), 4) + name;
    file += "PK\x03\x04" + std::string(10, '\0') + sizes + name + data;
  }
  return file + directory + "PK\x05\x06" + number(0, 4) + number(members.size(), 2) +
         number(members.size(), 2) + number(directory.size(), 4) + number(file.size(), 4) +
         number(0, 2);
}

std::string zip_error(const std::string& pickle, std::size_t data_bytes) {
  const std::string file = zip_of({{"m/data.pkl", "\x80\x02}U\x01x" + pickle + "s."},
                                   {"m/data/0", std::string(data_bytes, '\1')}});
  try {
    parse_torch_zip(raw_bytes_of(file), "'x'");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("torch zip: a tensor never reaches beyond its storage") {
  const std::string zero = "K\0"s;
  CHECK(zip_error(tensor_of(6, zero + "K\x02K\x03\x86K\x03K\x01\x86"), 24) == "accepted");
  CHECK(zip_error(tensor_of(6, zero + "K\x03K\x02\x86K\x01K\x03\x86"), 24) == "accepted");
  CHECK(zip_error(tensor_of(6, "K\x01K\x06\x85K\x01\x85"), 24).find("reaches beyond") !=
        std::string::npos);
  CHECK(zip_error(tensor_of(6, zero + "K\x03\x85K\x03\x85"), 24).find("reaches beyond") !=
        std::string::npos);
  CHECK(zip_error(tensor_of(6, zero + "K\x07\x85" + zero + "\x85"), 24).find("expanded") !=
        std::string::npos);
  CHECK(zip_error(tensor_of(6, zero + "K\x06\x85K\x01\x85"), 20).find("20 bytes for tensor 'x'") !=
        std::string::npos);
  CHECK(zip_error(tensor_of(6, "J\xff\xff\xff\xffK\x06\x85K\x01\x85"), 24).find("is damaged") !=
        std::string::npos);
  const std::string huge = std::string("\x8a\x08") + std::string(7, '\xff') + "\x7f";
  CHECK(zip_error(tensor_of(6, zero + huge + huge + "\x86" + huge + huge + "\x86"), 24)
            .find("reaches beyond") != std::string::npos);
  // A size of 1 may have any stride; no elements may lie anywhere.
  CHECK(zip_error(tensor_of(6, zero + "K\x03K\x01\x86K\x02" + huge + "\x86"), 24) == "accepted");
  CHECK(zip_error(tensor_of(6, huge + "K\x00\x85K\x01\x85"), 24).find("reaches") ==
        std::string::npos);
}

TEST_CASE("torch zip: more values than tensors need are refused") {
  CHECK(pickle_error(std::string(4'000'000, ')') + ".") == "'x' holds no tensors");
  CHECK(pickle_error(std::string(50'000'000, ')') + ".") ==
        "the pickle in 'x' has more than 4194304 values; save the state dict alone");
}

TEST_CASE("torch zip: a damaged archive is refused") {
  const std::string good = zip_of({{"m/data.pkl", "abc"}, {"m/data/0", "defg"}});
  const auto members = parse_zip(raw_bytes_of(good), "'x'");
  REQUIRE(members.size() == 2);
  CHECK(members.at("m/data/0").size() == 4);
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK_THROWS_AS(parse_zip(raw_bytes_of(good.substr(0, size)), "'x'"), Error);
  CHECK_THROWS_AS(parse_zip(raw_bytes_of(zip_of({{"a", "x"}, {"a", "y"}})), "'x'"), Error);
  CHECK_THROWS_AS(parse_torch_zip(raw_bytes_of(zip_of({{"a", "x"}})), "'x'"), Error);
  CHECK_THROWS_AS(
      parse_torch_zip(raw_bytes_of(zip_of({{"a/data.pkl", ""}, {"b/data.pkl", ""}})), "'x'"),
      Error);
  CHECK_THROWS_WITH(
      parse_torch_zip(raw_bytes_of(zip_of({{"a/data.pkl", ""}, {"a/byteorder", "big"}})), "'x'"),
      Catch::Contains("big-endian"));
}
