// What a worker may say: whatever it is, its program has an Error or what can be.
// SPDX-License-Identifier: Apache-2.0
#include "workers/parcel.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "base/error.h"
#include "base/json.h"

using namespace vfm;
using namespace vfm::workers;

namespace {

std::vector<std::byte> packed(const Parcel& parcel) {
  const PackedParcel pack(parcel);
  std::vector<std::byte> bytes(pack.bytes());
  pack.write(bytes.data());
  return bytes;
}

/// Of a text as the words say, with `behind` bytes behind it.
std::vector<std::byte> bytes_of(const std::string& words, std::size_t behind = 64) {
  std::vector<std::byte> bytes(16 + words.size() + behind);
  const std::uint64_t size = words.size();
  std::memcpy(bytes.data(), &kParcelMark, 8);
  std::memcpy(bytes.data() + 8, &size, 8);
  std::memcpy(bytes.data() + 16, words.data(), words.size());
  return bytes;
}

Parcel some() {
  return {"encode",
          Json{{"sizes", {1, 2}}, {"rate", 0.1}, {"text", "ein Fuchs \u00fc"}},
          {Tensor::from(std::vector<float>{1.5f, -2, 3}, {3}), bytes_tensor("a\0b"),
           Tensor({0, 4}, DType::bf16)}};
}

}  // namespace

TEST_CASE("a parcel comes out as it went in, as a copy or as views") {
  const auto bytes = packed(some());
  const auto owner = std::make_shared<int>(0);
  for (const bool views : {false, true}) {
    const Parcel parcel = read_parcel(bytes, views ? owner : nullptr);
    CHECK(parcel.name == "encode");
    CHECK(parcel.words == some().words);
    REQUIRE(parcel.tensors.size() == 3);
    CHECK(parcel.tensors[0].shape() == Shape{3});
    CHECK(parcel.tensors[0].floats()[1] == -2);
    CHECK(text_of(parcel.tensors[1]) == std::string_view("a\0b"));
    CHECK(parcel.tensors[2].shape() == Shape{0, 4});
    CHECK(parcel.tensors[2].dtype() == DType::bf16);
    const auto* const at = static_cast<const std::byte*>(parcel.tensors[0].raw());
    CHECK((at >= bytes.data() && at < bytes.data() + bytes.size()) == views);
  }
}

TEST_CASE("doubles keep all their bits, and a text that is no UTF-8 is refused") {
  Parcel parcel;
  parcel.words = Json{{"x", 0.1 + 0.2}, {"y", 5e-324}};
  const Parcel again = read_parcel(packed(parcel));
  CHECK(again.words["x"].get<double>() == 0.1 + 0.2);
  CHECK(again.words["y"].get<double>() == 5e-324);
  parcel.words = Json{{"folder", "a\xff"}};
  CHECK_THROWS_AS(packed(parcel), Error);
  CHECK_THROWS_AS(text_of(Tensor({2})), Error);
}

TEST_CASE("what is no parcel is an Error") {
  const auto refused = [](const std::string& words) {
    CHECK_THROWS_AS(read_parcel(bytes_of(words)), Error);
  };
  CHECK_NOTHROW(read_parcel(bytes_of(R"({"name":"","words":{},"tensors":[]})")));
  CHECK_NOTHROW(read_parcel(bytes_of(R"({"name":"","words":{},"tensors":[["U8",[7]]]})")));
  refused("");
  refused("[]");
  refused("{}");
  refused(R"({"name":1,"words":{},"tensors":[]})");
  refused(R"({"name":"","words":{}})");
  refused(R"({"name":"","words":{},"tensors":{}})");
  for (const char* tensor :
       {R"(["F64",[1]])", R"(["F32"])", R"(["F32",1])", R"([1,[1]])", R"(["F32",[-1]])",
        R"(["F32",[1.5]])", R"(["F32",["1"]])", R"(["U8",[4096]])", R"(["F32",[17]])",
        R"(["U8",[18446744073709551615]])", R"(["F32",[4294967296,4294967296]])",
        R"(["I64",[2305843009213693952,8]])", R"(["U8",[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]])",
        R"(["U8",[60]],["U8",[60]])"})
    refused(std::string(R"({"name":"","words":{},"tensors":[)") + tensor + "]}");
  const auto whole = bytes_of(R"({"name":"","words":{},"tensors":[]})", 0);
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_THROWS_AS(read_parcel(std::span(whole).first(size)), Error);
  auto other = whole;
  other[0] = std::byte{0};
  CHECK_THROWS_AS(read_parcel(other), Error);
  const std::uint64_t many = ~std::uint64_t{0};
  other = whole;
  std::memcpy(other.data() + 8, &many, 8);
  CHECK_THROWS_AS(read_parcel(other), Error);
}

TEST_CASE("bytes that chance has changed are an Error or a parcel within them") {
  std::mt19937 chance(7);
  const auto bytes = packed(some());
  for (int round = 0; round < 3000; ++round) {
    auto other = bytes;
    for (int n = 0; n < 3; ++n)
      other[chance() % other.size()] = std::byte(chance() % 256);
    try {
      const Parcel parcel = read_parcel(other);
      for (const Tensor& tensor : parcel.tensors)
        CHECK(tensor.bytes() <= other.size());
    } catch (const Error&) {
    }
  }
}
