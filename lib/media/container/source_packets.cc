// SPDX-License-Identifier: Apache-2.0
#include "media/container/source_packets.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "media/colour/hdr_metadata.h"
#include "media/container/coded_units.h"
#include "media/container/input.h"
#include "media/container/mux.h"
#include "media/container/splice_plan.h"
#include "media/container/timeline.h"
#include "media/decode/bounded.h"

namespace vfm::media {
namespace {

// In seconds. Gaps longer than kWorthSeeking are skipped with a seek. The seek aims kBefore
// earlier, because containers seek in decoding order, and frames are shown later.
constexpr double kWorthSeeking = 30, kBefore = 10;

constexpr const char* kChanges = "the source changes its parameter sets";
constexpr int kOtherSets = 1 << 30;  // Our flag: the packet needs other sets than the header's.

std::string_view bytes_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

std::string_view packet_bytes(const AVPacket& packet) {
  return bytes_of(packet.data, static_cast<std::size_t>(packet.size));
}

PacketPtr with_bytes(const AVPacket& packet, std::string_view bytes) {
  PacketPtr out = new_packet(bytes);
  out->pts = packet.pts;
  out->flags = packet.flags & AV_PKT_FLAG_KEY;
  return out;
}

}  // namespace

struct SourcePackets::State {
  State(const std::string& path, int number) : source{path, {}, {}}, wanted(number) { open(); }
  std::optional<std::int64_t> key_from(std::int64_t begin);
  CopiedVideo copy(std::int64_t key, std::span<const std::int64_t> frames, std::int64_t end);
  void open();
  bool read();
  void note_sets(AVPacket& packet);
  bool is_start(const AVPacket& packet) const;
  void go_to(std::int64_t begin);
  std::int64_t ticks(double seconds) const {
    return static_cast<std::int64_t>(seconds / av_q2d(stream->time_base));
  }
  std::string flaw(const AVPacket& packet) const;
  PacketPtr convert(const AVPacket& packet, bool first) const;

  Source source;
  int wanted;
  std::unique_ptr<Input> input;
  AVStream* stream = nullptr;
  AVCodecID codec = AV_CODEC_ID_NONE;
  int length_size = 0;
  Units sets;               // Of the stream's header.
  bool other_sets = false;  // The last packet read needs other sets.
  std::string refusal;
  Timeline timeline;
  std::deque<PacketPtr> kept;  // Begin where copying can begin.
  PacketPtr next;              // Read, but not kept yet.
  std::int64_t floor = INT64_MIN, last_time = INT64_MIN;
};

void SourcePackets::State::open() {
  kept.clear();
  next.reset();
  input = std::make_unique<Input>(source);
  AVFormatContext* format = input->format();
  if (wanted < 0 || wanted >= static_cast<int>(format->nb_streams))
    fail("'{}' has no stream {}", source.name, wanted);
  stream = format->streams[wanted];
  for (int i = 0; i < static_cast<int>(format->nb_streams); ++i)
    format->streams[i]->discard = i == wanted ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
  input->check_inside(wanted);
  timeline = Timeline(*stream);
  last_time = floor = INT64_MIN;
  other_sets = false;
  refusal.clear();
  codec = stream->codecpar->codec_id;
  if (splice_encoder(avcodec_get_name(codec)).empty()) {
    refusal = std::string("nothing here makes frames to stand beside copied ones of ") +
              avcodec_get_name(codec);
    return;
  }
  if (!has_nal_units(codec)) return;
  length_size = unit_length_size(*stream->codecpar);
  sets = parameter_sets(*stream->codecpar);
  std::erase_if(sets, [&](Unit set) { return !is_parameter_set(codec, unit_type(codec, set)); });
  if (sets.empty()) refusal = "its header has no parameter sets";
  for (const Unit set : sets)
    if (has_splice_id(codec, set))
      refusal = "its parameter sets have the number of those made here";
}

bool SourcePackets::State::read() {
  std::int64_t damaged = 0;
  for (;;) {
    check_stop();
    next.reset(not_null(av_packet_alloc()));
    if (!input->read(next.get(), damaged)) {
      next.reset();
      return false;
    }
    if (next->stream_index != wanted) continue;
    if (!has_one_time(*input->format())) timeline.lead(*next);
    if (damaged > 0) next->flags |= AV_PKT_FLAG_CORRUPT;
    if (next->pts == AV_NOPTS_VALUE)
      refusal = "its container does not tell the times of its frames";
    else
      last_time = next->pts;
    note_sets(*next);
    return true;
  }
}

// The first packet that needs new parameter sets, or the first after a seek, has them as side data.
void SourcePackets::State::note_sets(AVPacket& packet) {
  std::size_t size = 0;
  const AVCodecParameters& header = *stream->codecpar;
  if (const auto* data = av_packet_get_side_data(&packet, AV_PKT_DATA_NEW_EXTRADATA, &size))
    other_sets =
        bytes_of(data, size) !=
        bytes_of(header.extradata, static_cast<std::size_t>(std::max(0, header.extradata_size)));
  if (other_sets) packet.flags |= kOtherSets;
}

bool SourcePackets::State::is_start(const AVPacket& packet) const {
  constexpr int kUnfit = AV_PKT_FLAG_CORRUPT | AV_PKT_FLAG_DISCARD;
  return (packet.flags & AV_PKT_FLAG_KEY) && !(packet.flags & kUnfit) &&
         is_clean_start(codec, packet_bytes(packet), length_size);
}

// Seeks if needed. The next packet is then not after the first key frame from `begin` on.
void SourcePackets::State::go_to(std::int64_t begin) {
  const bool back = begin < floor;
  const bool far = last_time == INT64_MIN || begin - last_time > ticks(kWorthSeeking);
  if (back) open();
  if (!back && !far) return;
  const std::int64_t start = stream->start_time == AV_NOPTS_VALUE ? 0 : stream->start_time;
  const std::int64_t aim = begin - ticks(kBefore);
  if (!has_one_time(*input->format()) || aim <= start) return;
  kept.clear();
  next.reset();
  if (!input->seek(wanted, aim)) open();
}

std::string SourcePackets::State::flaw(const AVPacket& packet) const {
  if (packet.flags & AV_PKT_FLAG_CORRUPT) return "the source is damaged there";
  if (packet.flags & kOtherSets) return kChanges;
  if (!has_nal_units(codec)) return {};
  for (const Unit unit : split_units(packet_bytes(packet), length_size))
    if (is_parameter_set(codec, unit_type(codec, unit)) &&
        std::find(sets.begin(), sets.end(), unit) == sets.end())
      return kChanges;
  return {};
}

PacketPtr SourcePackets::State::convert(const AVPacket& packet, bool first) const {
  if (codec == AV_CODEC_ID_AV1 && (packet.flags & AV_PKT_FLAG_KEY) &&
      !has_sequence_header(packet_bytes(packet)))
    return with_bytes(packet,
                      std::string(sequence_header(*stream->codecpar)).append(packet_bytes(packet)));
  if (!has_nal_units(codec)) return with_bytes(packet, packet_bytes(packet));
  Units units;
  std::deque<std::string> changed;
  bool open = false;
  for (const Unit unit : split_units(packet_bytes(packet), length_size)) {
    const int type = unit_type(codec, unit);
    if (is_parameter_set(codec, type) || is_framing(codec, type)) continue;
    open = open || (!first && codec == AV_CODEC_ID_HEVC && is_open_start(type));
    if (first && codec == AV_CODEC_ID_HEVC)
      units.push_back(changed.emplace_back(as_broken_link(unit)));
    else
      units.push_back(unit);
  }
  PacketPtr out = with_bytes(packet, join_units(units));
  // A reader that seeks to an open key frame misses the pictures around it, and decord then returns
  // wrong frames. So open key frames, and recovery points of H.264, lose the key flag.
  open = open ||
         (codec == AV_CODEC_ID_H264 && !is_clean_start(codec, packet_bytes(packet), length_size));
  if (open) out->flags &= ~AV_PKT_FLAG_KEY;
  return out;
}

std::optional<std::int64_t> SourcePackets::State::key_from(std::int64_t begin) {
  go_to(begin);
  floor = begin;
  const auto fits = [&](const AVPacket& packet) { return packet.pts >= begin && is_start(packet); };
  while (!kept.empty() && !fits(*kept.front()))
    kept.pop_front();
  while (kept.empty()) {
    if (!refusal.empty() || !read()) return std::nullopt;
    if (fits(*next)) kept.push_back(std::move(next));
  }
  return kept.front()->pts;
}

CopiedVideo SourcePackets::State::copy(std::int64_t key, std::span<const std::int64_t> frames,
                                       std::int64_t end) {
  const auto refuse = [](std::string reason) { return CopiedVideo{{}, 0, std::move(reason)}; };
  if (kept.empty() || kept.front()->pts != key) return refuse("its packets cannot be found");
  // The plan ends at the first packet that is shown at `end` or later.
  const auto is_behind = [&](const PacketPtr& packet) { return packet->pts >= end; };
  bool whole = std::any_of(kept.begin(), kept.end(), is_behind);
  while (!whole && refusal.empty() && read()) {
    kept.push_back(std::move(next));
    whole = is_behind(kept.back());
  }
  if (!refusal.empty()) return refuse(refusal);
  std::vector<std::int64_t> times;
  for (const PacketPtr& packet : kept)
    times.push_back(packet->pts);
  const SplicePlan plan = plan_splice(times, frames, end);
  if (plan.frames == 0) return refuse("its packets are not those of its frames");

  auto data = std::make_shared<CodedVideo::Data>();
  std::size_t at = 0;
  for (const std::size_t place : plan.packets) {
    for (; at < place; ++at) {
      // Only leading pictures of the key frame may lie between.
      const Units units = split_units(packet_bytes(*kept[at]), length_size);
      const bool leads =
          codec == AV_CODEC_ID_HEVC && std::all_of(units.begin(), units.end(), [&](Unit unit) {
            const int type = unit_type(codec, unit);
            return is_leading(type) || type >= 32;
          });
      if (!leads) return refuse("what is shown before its key frame is decoded after it");
    }
    const AVPacket& packet = *kept[at++];
    if (std::string why = flaw(packet); !why.empty()) return refuse(std::move(why));
    data->packets.push_back(convert(packet, place == 0));
  }
  data->parameters.reset(not_null(avcodec_parameters_alloc()));
  if (avcodec_parameters_copy(data->parameters.get(), stream->codecpar) < 0) throw std::bad_alloc();
  if (has_nal_units(codec)) set_extradata(*data->parameters, join_units(sets));
  data->time_base = stream->time_base;
  data->sample_aspect = av_guess_sample_aspect_ratio(input->format(), stream, nullptr);
  data->frame_rate = stream->avg_frame_rate;
  data->hdr = hdr_of(*stream);
  return {CodedVideo(std::move(data)), plan.frames, {}};
}

// Reading may never end, so it has a time limit. It is apart from decoding, because it may be far
// ahead.
struct SourcePackets::Work {
  Bounded<State> state;
};

SourcePackets::SourcePackets(const std::string& path, int stream)
    : work_(new Work{Bounded<State>(
          path, [path, stream] { return std::make_shared<State>(path, stream); })}) {}
SourcePackets::~SourcePackets() = default;

std::string SourcePackets::refusal() const {
  const State* state = work_->state.get();
  return state ? state->refusal : std::string();
}
SpliceKind SourcePackets::kind() const {
  const State* state = work_->state.get();
  if (!state) return {};
  return {state->stream->codecpar->profile, state->stream->codecpar->level};
}
std::optional<std::int64_t> SourcePackets::key_from(std::int64_t begin) {
  return work_->state.call([begin](State& state) { return state.key_from(begin); });
}
CopiedVideo SourcePackets::copy(std::int64_t key, std::span<const std::int64_t> frames,
                                std::int64_t end) {
  const std::vector<std::int64_t> own(frames.begin(), frames.end());
  return work_->state.call([key, own, end](State& state) { return state.copy(key, own, end); });
}

}  // namespace vfm::media
