// SPDX-License-Identifier: Apache-2.0
#include "media/container/coded_units.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/error.h"

namespace vfm::media {
namespace {

// Types of NAL units.
constexpr int kIdr = 5, kSps = 7, kPps = 8, kDelimiter = 9, kFilling = 12;    // H.264
constexpr int kRadlN = 6, kRaslR = 9, kBlaWLp = 16, kBlaNLp = 18, kCra = 21;  // HEVC
constexpr int kHevcVps = 32, kHevcSps = 33, kHevcPps = 34, kHevcDelimiter = 35, kHevcFilling = 38;
constexpr int kMostSliceTypes = 32;                               // HEVC: slices are below.
constexpr int kSequenceHeader = 1, kFrameHeader = 3, kFrame = 6;  // AV1: types of OBUs.

unsigned byte_at(std::string_view bytes, std::size_t i) {
  return static_cast<std::uint8_t>(bytes[i]);
}

std::string_view extradata_of(const AVCodecParameters& parameters) {
  return {reinterpret_cast<const char*>(parameters.extradata),
          static_cast<std::size_t>(std::max(0, parameters.extradata_size))};
}

std::string_view take(std::string_view bytes, std::size_t& at, std::size_t size) {
  if (size > bytes.size() || at > bytes.size() - size) fail("a coded picture is cut short");
  at += size;
  return bytes.substr(at - size, size);
}

std::size_t take_number(std::string_view bytes, std::size_t& at, int size) {
  std::size_t value = 0;
  for (const char c : take(bytes, at, static_cast<std::size_t>(size)))
    value = value << 8 | static_cast<std::uint8_t>(c);
  return value;
}

Units split_by_start_codes(std::string_view bytes) {
  constexpr std::string_view kStart("\0\0\1", 3);
  Units units;
  for (std::size_t begin = bytes.find(kStart); begin != bytes.npos;) {
    const std::size_t end = bytes.find(kStart, begin + 3);
    Unit unit = bytes.substr(begin + 3, end == bytes.npos ? end : end - begin - 3);
    // Zeros at the end are filling, or part of a longer start code. A unit never ends with a zero.
    while (!unit.empty() && unit.back() == '\0')
      unit.remove_suffix(1);
    if (!unit.empty()) units.push_back(unit);
    begin = end;
  }
  return units;
}

// Reads the bits of a unit without emulation prevention (0 0 3). Bits after the end are 0.
class Bits {
 public:
  explicit Bits(Unit unit) {
    int zeros = 0;
    for (const char c : unit) {
      if (zeros >= 2 && c == 3) {
        zeros = 0;
        continue;
      }
      zeros = c == 0 ? zeros + 1 : 0;
      bytes_ += c;
    }
  }
  explicit Bits(std::string_view bytes, std::size_t from) : bytes_(bytes), at_(8 * from) {}

  unsigned bit() {
    const std::size_t i = at_++;
    return i < 8 * bytes_.size() ? byte_at(bytes_, i / 8) >> (7 - i % 8) & 1 : 0;
  }
  unsigned take(int count) {
    unsigned value = 0;
    while (count-- > 0)
      value = value << 1 | bit();
    return value;
  }
  unsigned exp_golomb() {
    int zeros = 0;
    while (zeros < 31 && bit() == 0)
      ++zeros;
    return (1U << zeros) - 1 + take(zeros);
  }
  std::size_t at() const { return at_; }
  std::size_t size() const { return 8 * bytes_.size(); }
  void go(std::size_t at) { at_ = at; }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

class BitWriter {
 public:
  void put(unsigned value, int count) {
    while (count-- > 0) {
      byte_ = byte_ << 1 | (value >> count & 1);
      if (++filled_ == 8) end_byte();
    }
  }
  void exp_golomb(unsigned value) {
    int length = 0;
    while ((value + 1) >> (length + 1))
      ++length;
    put(0, length);
    put(value + 1, length + 1);
  }
  void rest(Bits& bits, std::size_t end) {
    while (bits.at() < end)
      put(bits.bit(), 1);
    while (filled_ > 0)
      put(0, 1);
  }
  std::string unit() { return std::move(unit_); }

 private:
  void end_byte() {
    if (zeros_ >= 2 && byte_ <= 3) {
      unit_ += '\3';
      zeros_ = 0;
    }
    zeros_ = byte_ == 0 ? zeros_ + 1 : 0;
    unit_ += static_cast<char>(byte_);
    byte_ = 0, filled_ = 0;
  }
  std::string unit_;
  unsigned byte_ = 0;
  int filled_ = 0, zeros_ = 0;
};

// Returns the end of a unit's contents, after the stop bit.
std::size_t end_of_contents(const Bits& bits) {
  Bits copy = bits;
  for (std::size_t end = bits.size(); end > 0; --end) {
    copy.go(end - 1);
    if (copy.bit()) return end;
  }
  return 0;
}

void expect_zero(unsigned id) {
  if (id != 0) fail("the encoder numbers its parameter sets in another way");
}

// Bits of an HEVC SPS between the id of its VPS and its own id, for one temporal layer: the nesting
// flag, and the general profile, tier and level.
constexpr int kBeforeSpsId = 1 + 88 + 8;

bool is_vp9_start(std::string_view packet) {
  Bits bits(packet.substr(0, 4), 0);
  if (bits.take(2) != 2) return false;
  const unsigned profile = bits.bit() | bits.bit() << 1;
  if (profile == 3) bits.bit();
  const bool shows_existing = bits.bit() != 0;
  const bool inter = bits.bit() != 0, shown = bits.bit() != 0;
  return !shows_existing && !inter && shown;
}

struct Obu {
  int type = 0;
  std::string_view contents;
};
std::optional<Obu> take_obu(std::string_view packet, std::size_t& at) {
  if (at >= packet.size()) return std::nullopt;
  const std::size_t head = take_number(packet, at, 1);
  if (head & 4) take(packet, at, 1);
  std::size_t size = packet.size() - at;
  if (head & 2) {
    size = 0;
    for (int i = 0; i < 8; ++i) {
      const std::size_t byte = take_number(packet, at, 1);
      size |= (byte & 127) << (7 * i);
      if (!(byte & 128)) break;
    }
  }
  return Obu{static_cast<int>(head >> 3 & 15), take(packet, at, size)};
}

bool is_av1_start(std::string_view packet) {
  for (std::size_t at = 0; const auto obu = take_obu(packet, at);) {
    if (obu->type != kFrame && obu->type != kFrameHeader) continue;
    Bits bits(obu->contents.substr(0, 1), 0);
    const bool shows_existing = bits.bit() != 0;
    const unsigned type = bits.take(2);
    return !shows_existing && type == 0 && bits.bit() != 0;
  }
  return false;
}

}  // namespace

bool has_nal_units(AVCodecID codec) {
  return codec == AV_CODEC_ID_H264 || codec == AV_CODEC_ID_HEVC;
}

int unit_length_size(const AVCodecParameters& parameters) {
  const std::string_view extra = extradata_of(parameters);
  if (parameters.codec_id == AV_CODEC_ID_H264 && extra.size() > 6 && extra[0] == 1)
    return (extra[4] & 3) + 1;
  // The extradata is hvcC, unless it begins with a start code.
  if (parameters.codec_id == AV_CODEC_ID_HEVC && extra.size() > 22 &&
      (extra[0] != 0 || extra[1] != 0 || static_cast<std::uint8_t>(extra[2]) > 1))
    return (extra[21] & 3) + 1;
  return 0;
}

Units split_units(std::string_view packet, int length_size) {
  if (length_size == 0) return split_by_start_codes(packet);
  Units units;
  for (std::size_t at = 0; at < packet.size();) {
    const Unit unit = take(packet, at, take_number(packet, at, length_size));
    if (!unit.empty()) units.push_back(unit);
  }
  return units;
}

Units parameter_sets(const AVCodecParameters& parameters) {
  const std::string_view extra = extradata_of(parameters);
  if (unit_length_size(parameters) == 0) return split_by_start_codes(extra);
  Units units;
  const auto take_units = [&](std::size_t& at, std::size_t count) {
    while (count-- > 0)
      units.push_back(take(extra, at, take_number(extra, at, 2)));
  };
  if (parameters.codec_id == AV_CODEC_ID_H264) {
    std::size_t at = 5;
    take_units(at, take_number(extra, at, 1) & 31);
    take_units(at, take_number(extra, at, 1));
    return units;
  }
  std::size_t at = 22;
  for (std::size_t arrays = take_number(extra, at, 1); arrays > 0; --arrays) {
    take(extra, at, 1);
    take_units(at, take_number(extra, at, 2));
  }
  return units;
}

int unit_type(AVCodecID codec, Unit unit) {
  const int head = unit.empty() ? 0 : static_cast<std::uint8_t>(unit[0]);
  return codec == AV_CODEC_ID_H264 ? head & 31 : head >> 1 & 63;
}

bool is_parameter_set(AVCodecID codec, int type) {
  return codec == AV_CODEC_ID_H264 ? type == kSps || type == kPps
                                   : type >= kHevcVps && type <= kHevcPps;
}

bool is_framing(AVCodecID codec, int type) {
  return codec == AV_CODEC_ID_H264 ? type >= kDelimiter && type <= kFilling
                                   : type >= kHevcDelimiter && type <= kHevcFilling;
}

bool is_leading(int type) {
  return type >= kRadlN && type <= kRaslR;
}

bool is_open_start(int type) {
  return type == kCra;
}

std::string join_units(const Units& units) {
  std::string out;
  for (const Unit unit : units)
    out.append("\0\0\0\1", 4).append(unit);
  return out;
}

bool is_clean_start(AVCodecID codec, std::string_view packet, int length_size) {
  if (codec == AV_CODEC_ID_VP9) return is_vp9_start(packet);
  if (codec == AV_CODEC_ID_AV1) return is_av1_start(packet);
  for (const Unit unit : split_units(packet, length_size)) {
    const int type = unit_type(codec, unit);
    if (codec == AV_CODEC_ID_H264 && type >= 1 && type <= kIdr) return type == kIdr;
    if (codec == AV_CODEC_ID_HEVC && type < kMostSliceTypes) return type >= kBlaWLp && type <= kCra;
  }
  return false;
}

bool has_splice_id(AVCodecID codec, Unit set) {
  const int type = unit_type(codec, set);
  if (codec == AV_CODEC_ID_H264) {
    Bits bits(set.substr(std::min<std::size_t>(set.size(), type == kSps ? 4 : 1)));
    return bits.exp_golomb() == kSpliceId;
  }
  Bits bits(set.substr(std::min<std::size_t>(set.size(), 2)));
  if (type == kHevcPps) return bits.exp_golomb() == kSpliceId;
  if (bits.take(4) == kSpliceId) return true;
  if (type == kHevcVps) return false;
  // With temporal layers, the id is at another place. Any such set may have the id.
  if (bits.take(3) != 0) return true;
  bits.go(bits.at() + kBeforeSpsId);
  return bits.exp_golomb() == kSpliceId;
}

std::string with_splice_id(Unit unit) {
  const int type = unit_type(AV_CODEC_ID_HEVC, unit);
  const bool slice = type < kMostSliceTypes;
  if (!slice && !is_parameter_set(AV_CODEC_ID_HEVC, type)) return std::string(unit);
  Bits bits(unit);
  BitWriter out;
  const auto keep = [&](int count) {
    while (count-- > 0)
      out.put(bits.bit(), 1);
  };
  const auto replace_id = [&] {
    expect_zero(bits.exp_golomb());
    out.exp_golomb(kSpliceId);
  };
  keep(16);  // NAL unit header.
  if (slice) {
    // The flag of the first slice and, in key frames, no_output_of_prior_pics_flag.
    keep(type >= kBlaWLp && type <= 23 ? 2 : 1);
    replace_id();
    // The new id is eight bits longer, so the following bits stay as they are, to the last byte.
    out.rest(bits, bits.size());
    return out.unit();
  }
  if (type != kHevcPps) {
    expect_zero(bits.take(4));
    out.put(kSpliceId, 4);
  }
  if (type == kHevcSps) {
    const unsigned layers = bits.take(3);
    if (layers != 0) fail("the encoder makes temporal layers");
    out.put(0, 3);
    keep(kBeforeSpsId);
    replace_id();
  } else if (type == kHevcPps) {
    replace_id();
    replace_id();
  }
  out.rest(bits, end_of_contents(bits));
  return out.unit();
}

std::string as_broken_link(Unit unit) {
  std::string out(unit);
  if (unit_type(AV_CODEC_ID_HEVC, unit) == kCra)
    out[0] = static_cast<char>((static_cast<std::uint8_t>(out[0]) & 0x81) | kBlaNLp << 1);
  return out;
}

bool has_sequence_header(std::string_view packet) {
  for (std::size_t at = 0; const auto obu = take_obu(packet, at);)
    if (obu->type == kSequenceHeader) return true;
  return false;
}

std::string_view sequence_header(const AVCodecParameters& parameters) {
  const std::string_view extra = extradata_of(parameters);
  const bool is_av1c = extra.size() > 4 && static_cast<std::uint8_t>(extra[0]) == 0x81;
  return is_av1c ? extra.substr(4) : extra;
}

}  // namespace vfm::media
