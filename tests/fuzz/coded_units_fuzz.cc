// The headers that a copied video is cut by: NAL units and parameter sets of H.264 and HEVC, the
// first header of VP9 and AV1.
//
// The first byte chooses the codec and how long the lengths before NAL units are, the second how
// many of the bytes after it are what stands beside the packets (avcC, hvcC, av1C, start codes);
// the rest is a packet.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "fuzz.h"
#include "media/container/coded_units.h"

namespace {

using namespace vfm;
using namespace vfm::media;

constexpr AVCodecID kCodecs[] = {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_VP9,
                                 AV_CODEC_ID_AV1};

void expect(bool holds) {
  if (!holds) std::abort();
}

/// That a view is of the bytes that it was taken from.
void expect_inside(std::string_view part, std::string_view whole) {
  expect(part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size()));
}

/// What is done with each unit of a clip, and what its result promises.
void use_unit(AVCodecID codec, Unit unit) {
  const int type = unit_type(codec, unit);
  const bool set = is_parameter_set(codec, type);
  expect(!(set && is_framing(codec, type)));
  is_leading(type);
  is_open_start(type);
  if (set) has_splice_id(codec, unit);
  if (codec != AV_CODEC_ID_HEVC) return;
  const std::string broken = as_broken_link(unit);
  expect(broken.size() == unit.size());
  try {
    const std::string moved = with_splice_id(unit);
    expect(!set || has_splice_id(codec, moved));
    // Nothing in it looks like the beginning of another unit, if nothing did before.
    if (unit.find(std::string_view("\0\0\1", 3)) == unit.npos)
      expect(moved.find(std::string_view("\0\0\1", 3)) == moved.npos);
  } catch (const Error&) {
  }
}

void use_packet(AVCodecID codec, int length_size, std::string_view packet) {
  for (const Unit unit : split_units(packet, length_size)) {
    expect_inside(unit, packet);
    use_unit(codec, unit);
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const AVCodecID codec = kCodecs[data[0] & 3];
  const std::string_view bytes(reinterpret_cast<const char*>(data + 2), size - 2);
  const std::size_t beside = std::min<std::size_t>(data[1], bytes.size());
  const ParametersPtr parameters(not_null(avcodec_parameters_alloc()));
  parameters->codec_id = codec;
  if (beside > 0) set_extradata(*parameters, bytes.substr(0, beside));
  const std::string_view packet = bytes.substr(beside);
  const auto attempt = [](const auto& act) {
    try {
      act();
    } catch (const Error&) {
    }
  };
  attempt([&] { use_packet(codec, unit_length_size(*parameters), packet); });
  attempt([&] { use_packet(codec, data[0] >> 2 & 7, packet); });
  attempt([&] {
    const Units sets = parameter_sets(*parameters);
    for (const Unit set : sets)
      use_unit(codec, set);
    // What is written beside the packets of a clip is read again as it was.
    if (unit_length_size(*parameters) == 0) expect(split_units(join_units(sets), 0) == sets);
  });
  attempt([&] { is_clean_start(codec, packet, unit_length_size(*parameters)); });
  attempt([&] { has_sequence_header(packet); });
  sequence_header(*parameters);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  const auto seed = [](char choice, const std::string& beside, const std::string& packet) {
    return std::string{choice, static_cast<char>(beside.size())} + beside + packet;
  };
  const std::string avcc =
      "\1\x64\0\x0b\xff\xe1\0\x0a\x67\x64\0\x0b\xac\xd9\x42\x8d\x3b\x01\1\0"
      "\4\x68\xeb\xe3\xcb"s;
  const std::string hvcc =
      "\1\1\x60\0\0\0\x90\0\0\0\0\0\x1e\xf0\0\xfc\xfd\xf8\xf8\0\0\x0f\3"
      "\x20\0\1\0\7\x40\1\x0c\1\xff\xff\x01"
      "\x21\0\1\0\x10\x42\1\1\1\x60\0\0\3\0\x90\0\0\3\0\0\x3c"
      "\x22\0\1\0\6\x44\1\xc1\x72\xb4\x22"s;
  const std::string hevc_slice = "\x26\1\xaf\x12\0\0\3\1\x80"s, hevc_cra = "\x2a\1\xaf\x12\x80"s;
  return {seed(0, avcc, "\0\0\0\2\x09\xf0\0\0\0\5\x65\x88\x84\0\x10"s),
          seed(0, "\0\0\0\1\x67\x64\0\x0b\xac\0\0\1\x68\xeb\xe3"s, "\0\0\1\x65\x88\0\0\1\x41\x9a"s),
          seed(1, hvcc, "\0\0\0\x09"s + hevc_slice + "\0\0\0\5"s + hevc_cra),
          seed(1, "\0\0\0\1\x40\1\x0c\0\0\1\x42\1\1\0\0\1\x44\1\xc1"s, "\0\0\1"s + hevc_cra),
          seed(2, "", "\x82\x49\x83\x42\0\x3f\0\x2f"s),
          seed(3, "\x81\x04\x0c\0\x0a\x0b\0\0\0\x04\x3c\xff\xbc\xff\xe0\0\x40"s,
               "\x12\0\x0a\x0b\0\0\0\x04\x3c\xff\xbc\xff\xe0\0\x40\x32\3\x10\1\0"s)};
}
