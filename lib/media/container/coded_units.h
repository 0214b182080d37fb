// Inside lib/media only: parses coded pictures as far as copying them from one file to another
// requires: NAL units (H.264, HEVC), and the first header of VP9 and AV1. Pictures are not decoded.
// The only number read from a slice is the number of its parameter set.
//
// Formats: ITU-T H.264 7.3 and H.265 7.3; ISO/IEC 14496-15 for avcC and hvcC; the VP9 bitstream
// specification 6.2 and Annex B; the AV1 bitstream specification 5.5 and 5.9.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "media/libav.h"

namespace vfm::media {

/// The bytes of a NAL unit or OBU, without start code or length.
using Unit = std::string_view;
using Units = std::vector<Unit>;

/// Returns true for H.264 and HEVC.
bool has_nal_units(AVCodecID codec);
/// Returns the size in bytes of the length field before each NAL unit of a packet, or 0 if start
/// codes separate the units.
int unit_length_size(const AVCodecParameters& parameters);
/// Returns the NAL units of a packet, without empty units. Throws Error if a length exceeds the
/// packet.
Units split_units(std::string_view packet, int length_size);
/// Returns the parameter sets in a stream's extradata (avcC, hvcC or start codes). Throws Error if
/// they are truncated.
Units parameter_sets(const AVCodecParameters& parameters);

int unit_type(AVCodecID codec, Unit unit);
/// Returns true for VPS, SPS and PPS.
bool is_parameter_set(AVCodecID codec, int type);
/// Returns true for units without picture data or parameters: delimiters, filler data, ends of
/// sequence.
bool is_framing(AVCodecID codec, int type);
/// Returns true for HEVC's leading pictures: they are shown before the key frame that they follow
/// in decoding order.
bool is_leading(int type);
/// Returns true for HEVC's key frames (CRA) whose leading pictures may need pictures before the key
/// frame.
bool is_open_start(int type);
/// Returns the units, with start codes.
std::string join_units(const Units& units);

/// Returns true if decoding can begin with this packet, and pictures shown from it on are correct:
/// IDR pictures of H.264, random access points of HEVC (pictures shown before them are wrong), and
/// key frames of VP9 or AV1 that are shown at once. `length_size`: unit_length_size().
bool is_clean_start(AVCodecID codec, std::string_view packet, int length_size);

/// The number of our encoder's parameter sets. It differs from the source's number, so that one
/// header can have both sets. Sets with equal numbers would replace each other.
constexpr int kSpliceId = 15;
/// Returns whether a parameter set has the number kSpliceId.
bool has_splice_id(AVCodecID codec, Unit set);
/// Returns the HEVC unit, with number 0 of its parameter sets replaced by kSpliceId. Units of other
/// types are unchanged. Throws Error for sets with a number other than 0, or with temporal layers.
std::string with_splice_id(Unit unit);

/// Turns a CRA picture of HEVC, which may be in the middle of a sequence, into a BLA picture, which
/// begins a sequence and has no leading pictures. The decoded picture stays the same.
std::string as_broken_link(Unit unit);

/// Returns whether a packet of AV1 has a sequence header.
bool has_sequence_header(std::string_view packet);
/// Returns the sequence header of AV1's av1C, or an empty view if there is none.
std::string_view sequence_header(const AVCodecParameters& parameters);

}  // namespace vfm::media
