// Converts a track of sound to bytes, and back.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>

#include "media/container/mux.h"
#include "media/isolate/isolated_wire.h"

namespace vfm::media {
namespace {

class Bytes {
 public:
  template <class T>
  void add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add_block(const void* data, std::size_t size) {
    add(static_cast<std::uint64_t>(size));
    if (size > 0) text_.append(static_cast<const char*>(data), size);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class BytesReader {
 public:
  explicit BytesReader(std::string_view bytes) : left_(bytes) {}
  template <class T>
  T get() {
    T value{};
    std::memcpy(&value, block(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view get_block() { return block(get<std::uint64_t>()); }

 private:
  std::string_view block(std::uint64_t size) {
    if (size > left_.size()) fail("a child's sound is cut off");
    const std::string_view found = left_.substr(0, static_cast<std::size_t>(size));
    left_.remove_prefix(found.size());
    return found;
  }
  std::string_view left_;
};

// The properties that a muxer needs.
struct Numbers {
  int type, id, format, sample_rate, block_align, frame_size, initial_padding, trailing_padding,
      seek_preroll, profile, level, bits_per_coded_sample, bits_per_raw_sample;
  std::uint32_t tag;
  std::int64_t bit_rate;
  int channels, channel_order;
  std::uint64_t channel_mask;
  AVRational time_base;
};

Numbers numbers_of(const AVCodecParameters& p, AVRational time_base) {
  Numbers n{};
  n.type = p.codec_type, n.id = p.codec_id, n.format = p.format;
  n.sample_rate = p.sample_rate, n.block_align = p.block_align, n.frame_size = p.frame_size;
  n.initial_padding = p.initial_padding, n.trailing_padding = p.trailing_padding;
  n.seek_preroll = p.seek_preroll, n.profile = p.profile, n.level = p.level;
  n.bits_per_coded_sample = p.bits_per_coded_sample;
  n.bits_per_raw_sample = p.bits_per_raw_sample;
  n.tag = p.codec_tag, n.bit_rate = p.bit_rate;
  n.channels = p.ch_layout.nb_channels;
  n.channel_order = p.ch_layout.order;
  n.channel_mask = p.ch_layout.order == AV_CHANNEL_ORDER_NATIVE ? p.ch_layout.u.mask : 0;
  n.time_base = time_base;
  return n;
}

// Checked before the cast: a number of no codec must not become an AVCodecID.
bool is_sound_codec(int id) {
  for (const AVCodecDescriptor* codec = nullptr; (codec = avcodec_descriptor_next(codec));)
    if (static_cast<int>(codec->id) == id) return codec->type == AVMEDIA_TYPE_AUDIO;
  return false;
}

ParametersPtr parameters_of(const Numbers& n, std::string_view extra) {
  ParametersPtr made(not_null(avcodec_parameters_alloc()));
  AVCodecParameters& p = *made;
  if (n.type != AVMEDIA_TYPE_AUDIO || n.time_base.num <= 0 || n.time_base.den <= 0 ||
      n.channels < 0 || n.channels > 1024 || !is_sound_codec(n.id) ||
      extra.size() > std::numeric_limits<int>::max() / 2)
    fail("a child's sound is none");
  p.codec_type = AVMEDIA_TYPE_AUDIO, p.codec_id = static_cast<AVCodecID>(n.id);
  p.format = n.format, p.sample_rate = n.sample_rate, p.block_align = n.block_align;
  p.frame_size = n.frame_size, p.initial_padding = n.initial_padding;
  p.trailing_padding = n.trailing_padding, p.seek_preroll = n.seek_preroll;
  p.profile = n.profile, p.level = n.level;
  p.bits_per_coded_sample = n.bits_per_coded_sample;
  p.bits_per_raw_sample = n.bits_per_raw_sample;
  p.codec_tag = n.tag, p.bit_rate = n.bit_rate;
  if (n.channel_order == AV_CHANNEL_ORDER_NATIVE && n.channel_mask != 0) {
    av_channel_layout_from_mask(&p.ch_layout, n.channel_mask);
  } else {
    p.ch_layout.order = AV_CHANNEL_ORDER_UNSPEC;
    p.ch_layout.nb_channels = n.channels;
  }
  if (extra.empty()) return made;
  p.extradata =
      static_cast<std::uint8_t*>(not_null(av_mallocz(extra.size() + AV_INPUT_BUFFER_PADDING_SIZE)));
  p.extradata_size = static_cast<int>(extra.size());
  std::memcpy(p.extradata, extra.data(), extra.size());
  return made;
}

}  // namespace

struct TrackParcel {
  static std::string pack(const AudioTrack& track) {
    Bytes bytes;
    bytes.add(static_cast<std::uint8_t>(track.encoded_));
    bytes.add(track.corrupt_);
    bytes.add(static_cast<std::uint8_t>(track.data_ != nullptr));
    if (!track.data_) return bytes.take();
    const AudioTrack::Data& data = *track.data_;
    bytes.add(numbers_of(*data.parameters, data.time_base));
    bytes.add_block(data.parameters->extradata,
                    static_cast<std::size_t>(data.parameters->extradata_size));
    bytes.add(static_cast<std::uint64_t>(data.packets.size()));
    for (const PacketPtr& packet : data.packets) {
      bytes.add(packet->pts);
      bytes.add(packet->dts);
      bytes.add(packet->duration);
      bytes.add(packet->flags);
      bytes.add_block(packet->data, static_cast<std::size_t>(packet->size));
      bytes.add(packet->side_data_elems);
      for (int i = 0; i < packet->side_data_elems; ++i) {
        bytes.add(static_cast<int>(packet->side_data[i].type));
        bytes.add_block(packet->side_data[i].data, packet->side_data[i].size);
      }
    }
    return bytes.take();
  }

  static AudioTrack parse(std::string_view text) {
    BytesReader parcel(text);
    AudioTrack track;
    track.encoded_ = parcel.get<std::uint8_t>() != 0;
    track.corrupt_ = parcel.get<std::int64_t>();
    if (parcel.get<std::uint8_t>() == 0) return track;
    auto data = std::make_shared<AudioTrack::Data>();
    const auto numbers = parcel.get<Numbers>();
    data->time_base = numbers.time_base;
    data->parameters = parameters_of(numbers, parcel.get_block());
    for (auto left = parcel.get<std::uint64_t>(); left > 0; --left)
      data->packets.push_back(packet_of(parcel));
    track.codec_ = avcodec_get_name(data->parameters->codec_id);
    track.data_ = std::move(data);
    return track;
  }

 private:
  static PacketPtr packet_of(BytesReader& parcel) {
    PacketPtr packet(not_null(av_packet_alloc()));
    const auto pts = parcel.get<std::int64_t>(), dts = parcel.get<std::int64_t>(),
               duration = parcel.get<std::int64_t>();
    const int flags = parcel.get<int>();
    const std::string_view block = parcel.get_block();
    constexpr std::size_t kMostBlock = std::numeric_limits<int>::max() / 2;
    if (block.size() > kMostBlock) fail("a child's sound is none");
    if (av_new_packet(packet.get(), static_cast<int>(block.size())) < 0) throw std::bad_alloc();
    if (!block.empty()) std::memcpy(packet->data, block.data(), block.size());
    packet->pts = pts, packet->dts = dts, packet->duration = duration, packet->flags = flags;
    for (int left = parcel.get<int>(); left > 0; --left) {
      const int type = parcel.get<int>();
      const std::string_view side = parcel.get_block();
      if (type < 0 || type >= AV_PKT_DATA_NB || side.size() > kMostBlock)
        fail("a child's sound is none");
      std::uint8_t* const room = av_packet_new_side_data(
          packet.get(), static_cast<AVPacketSideDataType>(type), side.size());
      if (!room) fail("a child's sound is none");
      std::memcpy(room, side.data(), side.size());
    }
    return packet;
  }
};

std::string pack_track(const AudioTrack& track) {
  return TrackParcel::pack(track);
}

AudioTrack parse_track(std::string_view bytes) {
  return TrackParcel::parse(bytes);
}

}  // namespace vfm::media
