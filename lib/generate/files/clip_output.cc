// SPDX-License-Identifier: Apache-2.0
#include "generate/files/clip_output.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_members.h"
#include "base/log.h"
#include "base/units.h"
#include "generate/files/clip_progress.h"
#include "generate/files/contact_sheet.h"
#include "io/atomic_file.h"
#include "media/encode/encoder.h"
#include "tensor/failure.h"

namespace vfm::generate {

namespace {

struct Shape {
  int frames, width, height;
  Rational rate;
  explicit Shape(const Json& record)
      : frames(read(record, "frames")),
        width(read(record, "width")),
        height(read(record, "height")),
        rate(media::frame_rate(need_number(record, "fps", "the record"))) {}

  static int read(const Json& record, const char* name) {
    const std::int64_t value = need_integer(record, name, "the record");
    if (value < 1 || value > 100000) fail("the record has {} {}", value, name);
    return static_cast<int>(value);
  }
  media::RgbImage image(std::span<const std::uint8_t> frame) const {
    return {width, height, {frame.begin(), frame.end()}};
  }
};

media::EncodeOptions encode_options(const std::string& encoder, int quality, const Shape& shape) {
  media::EncodeOptions options;
  options.encoder = encoder;
  options.quality = quality;
  options.width = shape.width;
  options.height = shape.height;
  options.frame_rate = shape.rate;
  options.time_base = {shape.rate.den, shape.rate.num};
  return options;
}

}  // namespace

void check_clip(const models::VideoTokenizer& tokenizer, const generate::Latent& latent,
                const Json& record) {
  const Shape shape(record);
  generate::check_latent(tokenizer, latent, shape.frames, shape.height, shape.width);
}

void add_extra(Json& record, const Json& extra) {
  add_members(record, extra);
}

std::string usable_encoder(std::string encoder) {
  if (encoder.empty()) encoder = media::default_encoder();
  constexpr int kSide = 256;  // NVENC takes no pictures that are less than 146 wide
  const Shape trial(Json{{"frames", 1}, {"width", kSide}, {"height", kSide}, {"fps", 1}});
  media::VideoEncoder refuses_a_wrong_one(encode_options(encoder, 12, trial));
  refuses_a_wrong_one.add(trial.image(std::vector<std::uint8_t>(3 * kSide * kSide)), 0);
  refuses_a_wrong_one.finish();
  return encoder;
}

ClipFolder::ClipFolder(std::string output, std::string encoder, Progress& progress,
                       io::ManifestWriter& manifest, bool first)
    : output_(std::move(output)), progress_(progress), manifest_(manifest) {
  if (to_stream()) {
    if (!first) return;
    stream_ = io::File(::dup(STDOUT_FILENO), "standard output");
    return;
  }
  encoder_ = usable_encoder(std::move(encoder));
  io::make_directories(output_);
  if (first) error_log_.emplace(io::join_path(output_, "errors.jsonl"), "vfm-generate");
}

std::string ClipFolder::path_of(const std::string& name, const char* extension) const {
  return io::join_path(output_, name + extension);
}

void ClipFolder::add_coded_size(Json& record) const {
  const Shape shape(record);
  const auto [width, height] =
      media::coded_size(need_string(record, "encoder", "the record"), shape.width, shape.height);
  if (width != shape.width || height != shape.height)
    record.update({{"coded_width", width}, {"coded_height", height}});
}

bool ClipFolder::is_there(Json& record, const std::string& name) const {
  const std::string side = path_of(name, ".json"), mp4 = path_of(name, ".mp4");
  if (!io::file_exists(side) || !io::file_exists(mp4)) return false;
  try {
    const Json known = parse_json(io::read_file(side), side);
    const auto address = get_string(known, "address"), hash = get_string(known, "xxh3");
    if (!address || record["address"] != *address || !hash || io::hash_file(mp4) != *hash)
      return false;
    record["bytes"] = need_integer(known, "bytes", side);
    record["xxh3"] = *hash;
    return true;
  } catch (const Error&) {
    return false;  // damaged: made again
  }
}

std::string ClipFolder::encode(const models::VideoTokenizer& tokenizer,
                               const generate::Latent& latent, Json& record) const {
  const Shape shape(record);
  media::VideoEncoder encoder(encode_options(need_string(record, "encoder", "the record"),
                                             static_cast<int>(record["quality"]), shape));
  std::int64_t pts = 0;
  ClipProgress frames(progress_, record.value("name", ""), "frame");
  generate::decode_frames(tokenizer, latent, shape.frames, shape.height, shape.width,
                          [&](std::span<const std::uint8_t> frame) {
                            encoder.add(shape.image(frame), pts++);
                            frames.at(pts, shape.frames);
                          });
  std::string mp4 = encoder.finish();
  record["bytes"] = mp4.size();
  record["xxh3"] = hash_hex(mp4);
  return mp4;
}

std::string ClipFolder::stream(const models::VideoTokenizer& tokenizer,
                               const generate::Latent& latent, const Json& record) {
  const Shape shape(record);
  const std::tuple geometry(shape.width, shape.height, shape.rate);
  if (!y4m_) stream_geometry_ = geometry;
  if (stream_geometry_ != geometry)
    return "its size or rate differs from the first clip's: a stream has one";
  bool begun = false;
  std::int64_t done = 0;
  ClipProgress frames(progress_, record.value("name", ""), "frame");
  const auto add = [&](std::span<const std::uint8_t> frame) {
    begun = true;
    frames.at(++done, shape.frames);
    if (!y4m_)
      y4m_.emplace(
          [this](std::string_view bytes) { stream_.write_all(bytes.data(), bytes.size()); },
          shape.width, shape.height, shape.rate, media::Y4mChroma::yuv444);
    y4m_->add(shape.image(frame));
  };
  const std::string failure = failure_of([&] {
    generate::decode_frames(tokenizer, latent, shape.frames, shape.height, shape.width, add);
  });
  if (begun && !failure.empty()) fail("the stream ends in the middle of a clip: {}", failure);
  made_ += failure.empty() ? 1 : 0;
  if (failure.empty())
    log_info("'{}': {} of {}x{} {} in the stream", record.value("name", ""),
             counted(shape.frames, "frame"), shape.width, shape.height, is_or_are(shape.frames));
  return failure;
}

io::AtomicFile ClipFolder::hold(const std::string& name) const {
  return io::AtomicFile::await(path_of(name, ".json"));
}

std::optional<io::AtomicFile> ClipFolder::claim(Json& record, const std::string& name, bool force,
                                                const Json& extra) const {
  const auto there = [&] { return !force && is_there(record, name); };
  if (!there()) {
    io::AtomicFile held = hold(name);
    if (!there()) return held;
  }
  // It may have been asked for in other words.
  add_extra(record, extra);
  io::update_file(path_of(name, ".json"), dump_json_pretty(record));
  return std::nullopt;
}

void ClipFolder::keep(io::AtomicFile claim, const std::string& mp4, Json& record,
                      const std::string& name, const Json& extra) const {
  io::write_file(path_of(name, ".mp4"), mp4);
  add_extra(record, extra);
  claim.write(dump_json_pretty(record));
  claim.commit();
}

void ClipFolder::report(const Json& record, std::optional<double> seconds) {
  manifest_.write(record);
  ++made_;
  if (record["kind"] == "clip") records_.push_back(record);
  log_clip(record, seconds);
}

void log_clip(const Json& record, std::optional<double> seconds) {
  log_info("'{}': {} of {}x{}, {}", record["path"].get<std::string>(),
           counted(record["frames"].get<std::int64_t>(), "frame"), record["width"].dump(),
           record["height"].dump(), seconds ? "ready in " + format_seconds(*seconds) : "was there");
}

void ClipFolder::add_error(const io::Fault& fault) {
  ++errors_;
  if (error_log_)
    error_log_->add(fault);
  else
    log_warning("{}: {}", fault.input, fault.message);
}

long ClipFolder::finish(const io::InputStreams& input, const char* inputs) {
  if (error_log_) error_log_->finish();
  if (made_ == 0) input.check_whole("no clip was made");
  if (made_ == 0 && errors_ == 0)
    fail("no {} are given: give some, or lines of them on standard input", inputs);
  if (made_ == 0) fail("no clip was made: all {} failed", inputs);
  if (records_.empty()) return errors_;
  std::vector<std::string> paths;
  for (const Json& record : records_)
    paths.push_back(record["path"].get<std::string>());
  write_contact_sheet(path_of("contact-sheet", ".png"), paths);
  return errors_;
}

}  // namespace vfm::generate
