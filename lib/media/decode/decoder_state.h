// Inside lib/media only: the state of a Decoder in this process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "media/container/input.h"
#include "media/container/timeline.h"
#include "media/decode/codec_watch.h"
#include "media/decode/decoder.h"
#include "media/decode/hardware_decoder.h"
#include "media/decode/pictures.h"
#include "media/libav.h"

namespace vfm::media {

struct Decoder::State {
  State(const Source& from, const DecodeOptions& how);

  // decoder_open.cc
  void open();
  void choose_stream();
  void open_codec();
  void note_software() const;
  void decode_with(std::shared_ptr<share::EngineSessions::Session> given);
  void describe();
  void read_matrix(const std::uint8_t* data, std::size_t size);
  bool animated();
  void rewind();

  // decoder.cc
  bool feed();
  bool take(AvFramePtr av, Frame& frame);
  bool decode_once(Frame& frame);
  bool decode_again(std::optional<std::int64_t> after, Frame& frame);
  bool decode(Frame& frame);
  bool fetch(Frame& frame);
  void stamp(Frame& frame);
  bool try_seek(std::int64_t target, std::int64_t aim);
  void seek(std::int64_t target);
  bool seeks() const;
  void note_damage(bool failed);
  void check_memory(int result) const;
  void check_count(const AVFrame& picture);
  void check_possible() const;
  std::int64_t lost() const;
  bool is_mp4() const;
  std::int64_t nominal_duration() const;
  std::int64_t final_duration(const Frame& last) const;

  Source source;
  DecodeOptions options;
  /// Owner of options.hardware, or null if the hardware is not shared.
  std::shared_ptr<const HardwareDecoder> kept_hardware;
  StreamInfo info;
  std::unique_ptr<Input> input;
  AVStream* stream = nullptr;
  CodecWatch watch;
  std::shared_ptr<share::EngineSessions::Session> session;
  /// Bytes of GPU memory of the session that the decoder will take before its first picture; 0 if
  /// the decoder will take no session.
  std::int64_t session_bytes = 0;
  CodecPtr codec;
  PacketPtr packet{not_null(av_packet_alloc())};
  FrameImporter importer;
  Timeline timeline;
  PictureCount pictures;

  bool draining = false;
  bool finished = false;
  std::int64_t last_dts = 0;
  std::int64_t corrupt = 0;
  bool careful = false;      // Set if damage was found; see decode().
  bool from_start = true;    // Set if the source was read from the beginning without a seek.
  bool on_hardware = false;
  bool refused = false;      // Set if the hardware failed to give a picture.
  int hardware_width = 0, hardware_height = 0;
  bool any_frame = false;
  bool irregular = false;                       // Set if a pts was computed from an earlier frame.
  std::optional<std::int64_t> last_pts;
  std::int64_t last_gap = 0;
  std::optional<Frame> earlier;  // The previous frame, without deinterlacing.
  std::optional<Frame> pending;  // The decoded frame that next() returns next.
  std::int64_t index = 0;
  // Numbers of frames and pixels since opening or seeking, and their limits; a limit is 0 if
  // unknown.
  std::int64_t decoded = 0, most_decoded = 0;
  double pixels = 0, most_pixels = 0;
};

}  // namespace vfm::media
