// Inside lib/media only: the parts that coded pictures are made of, as far as copying them from one
// file to another needs: NAL units (H.264, HEVC), the first header of VP9 and AV1. No picture is
// decoded, and nothing of a slice is read but its parameter set's number.
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

/// A NAL unit, or an OBU: its bytes, without start code or length.
using Unit = std::string_view;
using Units = std::vector<Unit>;

/// H.264 or HEVC.
bool has_nal_units(AVCodecID codec);
/// Bytes of the length before each NAL unit of these streams' packets; 0: there are start codes.
int unit_length_size(const AVCodecParameters& parameters);
/// The NAL units of a packet. Leaves out empty units. Throws Error for a length beyond the end.
Units split_units(std::string_view packet, int length_size);
/// The parameter sets of a stream outside its packets, from avcC, hvcC or start codes. Throws Error
/// if they are truncated.
Units parameter_sets(const AVCodecParameters& parameters);

int unit_type(AVCodecID codec, Unit unit);
/// VPS, SPS, PPS.
bool is_parameter_set(AVCodecID codec, int type);
/// True if the unit only serves the container: a delimiter, filling, an end of sequence.
bool is_framing(AVCodecID codec, int type);
/// HEVC: whether a picture of this type is shown before the key frame that it follows.
bool is_leading(int type);
/// HEVC: whether pictures that lead to one of this type may need earlier pictures.
bool is_open_start(int type);
/// Units with start codes.
std::string join_units(const Units& units);

/// True if decoding can begin here, with correct pictures from this one on: an IDR picture of
/// H.264, any random access point of HEVC (pictures shown before it are wrong), a key frame of VP9
/// or AV1 that is shown at once. `length_size`: of NAL units.
bool is_clean_start(AVCodecID codec, std::string_view packet, int length_size);

/// The number for parameter sets of our encoder, so that they and the source's may be in one
/// header: sets with one number replace each other, and readers differ in when.
constexpr int kSpliceId = 15;
/// Whether a parameter set has that number.
bool has_splice_id(AVCodecID codec, Unit set);
/// HEVC: the unit with kSpliceId instead of 0 as the number of its parameter sets. In a slice that
/// number takes eight bits more, so all that follows it stays on its bytes. Other units are
/// unchanged. Throws Error for sets that have another number than 0, or temporal layers.
std::string with_splice_id(Unit unit);

/// HEVC: a CRA picture (which a decoder may take for one in the middle of a sequence) as one where
/// a sequence begins (BLA), without pictures that lead to it. The picture is the same.
std::string as_broken_link(Unit unit);

/// AV1: whether a packet has a sequence header; the one of av1C, empty if there is none.
bool has_sequence_header(std::string_view packet);
std::string_view sequence_header(const AVCodecParameters& parameters);

}  // namespace vfm::media
