// Inside lib/media only: parses coded pictures, to copy them between files. Reads NAL units of
// H.264 and HEVC, and the first header of VP9 and AV1.
//
// Formats: ITU-T H.264 7.3 and H.265 7.3; ISO/IEC 14496-15 for avcC and hvcC; the VP9 bitstream
// specification 6.2 and Annex B; the AV1 bitstream specification 5.5 and 5.9. Thread-safety: pure
// functions.
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
/// Returns the size in bytes of the length field before each NAL unit of a packet. Returns 0 if the
/// units have start codes.
int unit_length_size(const AVCodecParameters& parameters);
/// Returns the NAL units of a packet, without empty units. Throws Error if a length exceeds the
/// packet.
Units split_units(std::string_view packet, int length_size);
/// Returns the parameter sets in the extradata of a stream (avcC, hvcC or start codes). Throws
/// Error if the extradata are truncated.
Units parameter_sets(const AVCodecParameters& parameters);

int unit_type(AVCodecID codec, Unit unit);
/// Returns true for VPS, SPS and PPS.
bool is_parameter_set(AVCodecID codec, int type);
/// Returns true for delimiters, filler data and ends of sequences.
bool is_framing(AVCodecID codec, int type);
/// Returns true for leading pictures of HEVC, which are decoded after a key frame but shown before
/// this key frame.
bool is_leading(int type);
/// Returns true for HEVC key frames of type CRA. Leading pictures of such a key frame may need
/// pictures from before the key frame.
bool is_open_start(int type);
/// Returns the bytes of the units, with a start code before each unit.
std::string join_units(const Units& units);

/// Returns true if decoding can begin with this packet, and all pictures shown from this packet on
/// are correct. Such packets are IDR pictures of H.264, random access points of HEVC, and key
/// frames of VP9 or AV1 that are shown immediately. `length_size` is the result of
/// unit_length_size().
bool is_clean_start(AVCodecID codec, std::string_view packet, int length_size);

/// The id of the encoder's parameter sets. The source's parameter sets have other ids, so one
/// header can have all of them.
constexpr int kSpliceId = 15;
/// Returns true if the id of a parameter set is kSpliceId.
bool has_splice_id(AVCodecID codec, Unit set);
/// Returns an HEVC unit in which kSpliceId replaces 0 as the id of parameter sets. A unit without
/// an id of parameter sets is returned unchanged. Throws Error for other ids, and for temporal
/// layers.
std::string with_splice_id(Unit unit);

/// Converts a CRA picture of HEVC to a BLA picture, which begins a sequence and has no leading
/// pictures. The decoded picture does not change.
std::string as_broken_link(Unit unit);

/// Returns true if a packet of AV1 has a sequence header.
bool has_sequence_header(std::string_view packet);
/// Returns the sequence header in the av1C of AV1, or an empty view.
std::string_view sequence_header(const AVCodecParameters& parameters);

}  // namespace vfm::media
