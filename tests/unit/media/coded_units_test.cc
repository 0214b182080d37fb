// SPDX-License-Identifier: Apache-2.0
#include "media/container/coded_units.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "base/error.h"

using namespace std::string_literals;
using namespace vfm::media;

namespace {

/// A string of these bits, of the rightmost byte's with zeros behind.
std::string bits(std::string_view text) {
  std::string out;
  int count = 0;
  for (const char c : text) {
    if (c == ' ') continue;
    if (count++ % 8 == 0) out += '\0';
    if (c == '1') out.back() = static_cast<char>(out.back() | 1 << (7 - (count - 1) % 8));
  }
  return out;
}

ParametersPtr parameters(AVCodecID codec, std::string_view extradata) {
  ParametersPtr p(not_null(avcodec_parameters_alloc()));
  p->codec_id = codec;
  if (!extradata.empty()) set_extradata(*p, extradata);
  return p;
}

}  // namespace

TEST_CASE("Units are found behind start codes and behind lengths", "[splice]") {
  const std::string with_codes = "\0\0\0\1\x67\x64\0\0\1\x68\0\0\0\1\x65\x88\0"s;
  CHECK(split_units(with_codes, 0) == Units{"\x67\x64", "\x68", "\x65\x88"});
  CHECK(split_units("\0\2ab\0\1c\0\0"s, 2) == Units{"ab", "c"});
  CHECK_THROWS_AS(split_units("\0\0\0\5ab"s, 4), vfm::Error);
  CHECK_THROWS_AS(split_units("\0\0"s, 4), vfm::Error);
  CHECK(join_units({"a", "bc"}) == "\0\0\0\1a\0\0\0\1bc"s);
}

TEST_CASE("Parameter sets are found in avcC and hvcC", "[splice]") {
  const auto avc = parameters(AV_CODEC_ID_H264, "\1\x64\0\x1f\xff\xe1\0\2\x67S\1\0\2\x68P"s);
  CHECK(unit_length_size(*avc) == 4);
  CHECK(parameter_sets(*avc) == Units{"\x67S", "\x68P"});
  const auto hevc = parameters(AV_CODEC_ID_HEVC, "\1"s + std::string(20, '\0') + "\3\2" +
                                                     "\x20\0\1\0\2\x40V\x21\0\1\0\2\x42S"s);
  CHECK(unit_length_size(*hevc) == 4);
  CHECK(parameter_sets(*hevc) == Units{"\x40V", "\x42S"});
  const auto shorter = parameters(AV_CODEC_ID_H264, "\1\x64\0\x1f\xff\xe1\0\7\x67S"s);
  CHECK_THROWS_AS(parameter_sets(*shorter), vfm::Error);
}

TEST_CASE("Only a picture that needs nothing before it is a clean start", "[splice]") {
  const auto starts = [](AVCodecID codec, const std::string& unit) {
    return is_clean_start(codec, "\0\0\1"s + unit, 0);
  };
  CHECK(starts(AV_CODEC_ID_H264, "\x65\x88"));
  CHECK_FALSE(starts(AV_CODEC_ID_H264, "\x41\x88"));
  CHECK_FALSE(starts(AV_CODEC_ID_H264, "\x06\x05"));
  for (int type = 0; type < 32; ++type)
    CHECK(starts(AV_CODEC_ID_HEVC, {static_cast<char>(type << 1), 1, 1}) ==
          (type >= 16 && type <= 21));
  CHECK(is_clean_start(AV_CODEC_ID_VP9, bits("10 00 0 0 1 0"), 0));
  CHECK_FALSE(is_clean_start(AV_CODEC_ID_VP9, bits("10 00 0 1 1 0"), 0));  // not a key frame
  CHECK_FALSE(is_clean_start(AV_CODEC_ID_VP9, bits("10 00 0 0 0 0"), 0));  // not shown
  CHECK_FALSE(is_clean_start(AV_CODEC_ID_VP9, bits("10 00 1 000"), 0));    // one shown again
  // A sequence header of one byte, then a frame.
  const std::string sequence = "\x0a\1\0"s, frame = "\x32\1"s;
  CHECK(is_clean_start(AV_CODEC_ID_AV1, sequence + frame + bits("0 00 1"), 0));
  CHECK_FALSE(is_clean_start(AV_CODEC_ID_AV1, sequence + frame + bits("0 01 1"), 0));
  CHECK_FALSE(is_clean_start(AV_CODEC_ID_AV1, sequence + frame + bits("0 00 0"), 0));
  CHECK(has_sequence_header(sequence + frame + "\0"s));
  CHECK_FALSE(has_sequence_header(frame + "\0"s));
}

TEST_CASE("A slice with another number keeps all its bytes behind it", "[splice]") {
  // Type 19 (IDR): first slice, no flag, number 0, then anything, with what looks like a start
  // code.
  const std::string slice = bits("0 010011 0 00000001  1 0 1 01011") + "\x12\0\0\3\1\x80"s;
  const std::string moved = with_splice_id(slice);
  // Number 15 is 0000 1 0000.
  CHECK(moved == bits("0 010011 0 00000001  1 0 000010 000 01011") + "\x12\0\0\3\1\x80"s);
  // Type 1: no second flag. What becomes zeros is kept from looking like a start code.
  CHECK(with_splice_id(bits("0 000001 0 00000001  0 1 000000 ") + "\0\1\x80"s) ==
        bits("0 000001 0 00000001  0 0000100 00000000") + "\0\3\1\x80"s);
  CHECK_THROWS_AS(with_splice_id(bits("0 000001 0 00000001  1 010 0000")), vfm::Error);
  CHECK(with_splice_id("\x4e\1\5"s) == "\x4e\1\5"s);  // SEI
  const std::string vps = with_splice_id(bits("0 100000 0 00000001  0000 1101 10000000"));
  CHECK(vps == bits("0 100000 0 00000001  1111 1101 10000000"));
  CHECK(has_splice_id(AV_CODEC_ID_HEVC, vps));
  const std::string pps = with_splice_id(bits("0 100010 0 00000001  1 1 01 1 000"));
  CHECK(pps == bits("0 100010 0 00000001  000010000 000010000 01 1 000"));
  CHECK(has_splice_id(AV_CODEC_ID_HEVC, pps));
  CHECK(as_broken_link(bits("0 010101 0 00000001 1")) == bits("0 010010 0 00000001 1"));
}

TEST_CASE("Whatever the bytes are, there is an answer or an Error", "[splice]") {
  std::mt19937 random(1);
  const auto byte = [&] { return static_cast<char>(random() % 5 == 0 ? 0 : random()); };
  for (int round = 0; round < 3000; ++round) {
    std::string bytes(random() % 60, '\0');
    for (char& c : bytes)
      c = byte();
    if (round % 3 == 0 && !bytes.empty()) bytes[0] = 1;
    for (const AVCodecID codec :
         {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_VP9, AV_CODEC_ID_AV1}) {
      const auto p = parameters(codec, bytes);
      try {
        is_clean_start(codec, bytes, unit_length_size(*p));
        has_sequence_header(bytes);
        sequence_header(*p);
        for (const Unit unit : parameter_sets(*p))
          has_splice_id(codec, unit);
        with_splice_id(bytes);
      } catch (const vfm::Error&) {
      }
    }
  }
}
