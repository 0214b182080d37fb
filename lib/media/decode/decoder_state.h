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
  /// Keeps options.hardware alive if it is shared: work left behind may outlive the owner.
  std::shared_ptr<const HardwareDecoder> kept_hardware;
  StreamInfo info;
  std::unique_ptr<Input> input;
  AVStream* stream = nullptr;
  CodecWatch watch;
  std::shared_ptr<share::EngineSessions::Session> session;
  /// Until `session` is taken: the GPU bytes that a session needs; 0 to decode in software.
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
  bool careful = false;                         // damage was found: see decode()
  bool from_start = true;                       // no seek since opening
  bool on_hardware = false;                     // the open codec decodes on options.hardware
  bool refused = false;                         // the hardware did not give a picture
  int hardware_width = 0, hardware_height = 0;  // of the hardware's pictures since opening
  bool any_frame = false;                       // a frame was decoded at some time
  bool irregular = false;  // some pts was computed, so times depend on all earlier frames
  std::optional<std::int64_t> last_pts;
  std::int64_t last_gap = 0;
  std::optional<Frame> earlier;  // the last frame returned, as stored, if it was interlaced
  std::optional<Frame> pending;  // decoded; its duration is known with the next frame
  std::int64_t index = 0;
  // Counts since opening or seeking, and their limits (0: unknown).
  std::int64_t decoded = 0, most_decoded = 0;
  double pixels = 0, most_pixels = 0;
};

}  // namespace vfm::media
