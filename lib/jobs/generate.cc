// SPDX-License-Identifier: Apache-2.0
#include "jobs/generate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/ordered.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/manifest.h"
#include "jobs/contact_sheet.h"
#include "jobs/generation_report.h"
#include "media/encoder.h"
#include "media/png.h"
#include "media/y4m.h"

namespace vfm::jobs {

namespace {

constexpr double kSlowest = 0.1, kFastest = 1000;  // frames a second

/// The rate as FFmpeg wants it: the broadcast rates as n/1001, others to a thousandth.
Rational to_rational(double fps) {
  if (!(fps >= kSlowest && fps <= kFastest))
    fail("{} frames a second: must be between {} and {}", fps, kSlowest, kFastest);
  const double broadcast = fps * 1001 / 1000;
  if (fps == std::round(fps)) return {std::lround(fps), 1};
  if (std::abs(broadcast - std::round(broadcast)) < 1e-4)
    return {std::lround(broadcast) * 1000, 1001};
  return {std::max(1L, std::lround(fps * 1000)), 1000};
}

media::RgbImage frame_of(const generate::GeneratedClip& clip, int frame) {
  const std::size_t size = std::size_t{3} * clip.width * clip.height;
  const auto begin = clip.pixels.begin() + static_cast<std::ptrdiff_t>(size * frame);
  return {clip.width, clip.height, {begin, begin + static_cast<std::ptrdiff_t>(size)}};
}

/// A model that cannot be used is known before any work.
models::LoadedModel load(const GenerateJob& job) {
  try {
    std::optional<DType> compute = job.compute;
    if (!compute && job.fp8.any()) compute = DType::bf16;
    if (!compute && job.device == Device::cpu) compute = DType::f32;
    return models::load_model(job.model, job.ema, compute, job.device);
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.what(), ErrorKind::usage);
  }
}

/// What became of one order.
struct Result {
  ClipOrder order;
  Json record;                     ///< of the manifest
  std::string mp4;                 ///< to be written; empty if the clip is there
  generate::GeneratedClip pixels;  ///< for the stream
};

class Run {
 public:
  Run(const GenerateJob& job, Progress& progress);
  long run(Slots& slots);

 private:
  bool to_stream() const { return job_.output == "-"; }
  std::string path_of(const std::string& name, const char* extension) const {
    return io::join_path(job_.output, name + extension);
  }
  std::optional<ClipOrder> next_order();
  void measure_fp8(const ClipOrder& order);
  void refuse_other_model(const ClipOrder& order) const;
  void complete(ClipOrder& order);
  Json describe(const ClipOrder& order) const;
  Result make(ClipOrder& order) const;
  bool is_there(Json& record, const std::string& name) const;
  std::string encode(const generate::GeneratedClip& clip, const ClipOrder& order) const;
  void hand_over(Result& result);
  void write_stream(Result& result);
  void add_error(const ClipOrder& order);

  const GenerateJob& job_;
  Progress& progress_;
  generate::Generator generator_;
  std::string model_hash_, encoder_;
  std::optional<io::ErrorLog> error_log_;
  io::ManifestWriter manifest_;
  PromptReader prompts_;
  std::set<std::string> names_;      ///< taken in this run
  std::optional<double> fp8_error_;  ///< measured on the first order
  bool noted_size_ = false, noted_odd_ = false;
  long errors_ = 0, made_ = 0;
  std::vector<Json> records_;
  io::File stream_;
  std::optional<media::Y4mWriter> y4m_;
  std::tuple<int, int, Rational> stream_geometry_;  ///< width, height, rate of the first clip
};

Run::Run(const GenerateJob& job, Progress& progress)
    : job_(job),
      progress_(progress),
      generator_(load(job)),
      model_hash_(io::hash_file(io::join_path(generator_.model().folder, "COMPLETE"))),
      prompts_(job.prompts, job.defaults) {
  if (job.fp8.any()) generator_.set_fp8(job.fp8);  // refuses a model that cannot
  if (to_stream()) {
    stream_ = io::File(::dup(STDOUT_FILENO), "standard output");
    return;
  }
  encoder_ = job.encoder.empty() ? media::default_encoder() : job.encoder;
  ClipOrder trial;
  trial.encoder = encoder_;
  trial.request.fps = 1;
  encode({1, 64, 64, std::vector<std::uint8_t>(3 * 64 * 64)}, trial);  // refuses a wrong encoder
  io::make_directories(job.output);
  error_log_.emplace(io::join_path(job.output, "errors.jsonl"), "vfm-generate");
}

/// The next prompt as an order that lacks nothing, or with an error. One caller at a time, in
/// order.
std::optional<ClipOrder> Run::next_order() {
  std::optional<ClipOrder> order = prompts_.next();
  if (!order || !order->error.empty()) return order;
  try {
    complete(*order);
    if (job_.fp8.any() && !fp8_error_) measure_fp8(*order);
  } catch (const Error& error) {
    order->error = error.what();
  }
  if (fp8_error_ && !(*fp8_error_ <= job_.fp8_tolerance))
    fail(
        "FP8 changes the model's output by {:.4f} of its size, more than --fp8-tolerance {} "
        "allows: "
        "generate without --fp8, or allow more",
        *fp8_error_, job_.fp8_tolerance);
  return order;
}

/// Before any clip is made: nobody else uses the generator yet.
void Run::measure_fp8(const ClipOrder& order) {
  fp8_error_ = generator_.fp8_error(job_.fp8, order.request, order.sampling);
  generator_.set_fp8(job_.fp8);
}

/// A record of the manifest orders the clip that it describes: with other weights it would be
/// another one.
void Run::refuse_other_model(const ClipOrder& order) const {
  if (order.model_hash && *order.model_hash != model_hash_)
    fail("the record was made by another model (model_hash {}, this one's is {})",
         *order.model_hash, model_hash_);
  const char* weights = generator_.model().ema ? "ema" : "model";
  if (order.weights && *order.weights != weights)
    fail("the record was made with the weights '{}': give --weights {}", *order.weights,
         *order.weights);
  // A record without a word about it was made without FP8.
  const std::string fp8 = order.fp8.value_or("off");
  if ((order.fp8 || order.model_hash) && fp8 != models::fp8_name(job_.fp8))
    fail("the record was made with FP8 '{}': give --fp8 {}", fp8, fp8);
  const std::string compute = generator_.model().compute == DType::bf16 ? "bf16" : "f32";
  if (order.model_hash && order.compute.value_or("f32") != compute)
    fail("the record was made in {}: give --compute {}", order.compute.value_or("f32"),
         order.compute.value_or("f32"));
}

void Run::complete(ClipOrder& order) {
  refuse_other_model(order);
  const generate::TrainedSize &trained = generator_.usual(), &largest = generator_.largest();
  generate::ClipRequest& request = order.request;
  if (request.frames == 0) request.frames = trained.frames;
  if (request.height == 0) request.height = trained.height;
  if (request.width == 0) request.width = trained.width;
  if (request.fps == 0) request.fps = trained.fps > 0 ? trained.fps : 24;
  if (!noted_size_ && generator_.beyond_training(request)) {
    noted_size_ = true;
    log_warning(
        "{} frames of {}x{} are more than the model was trained on ({} of {}x{}): positions are "
        "squeezed, the clip may lack detail",
        request.frames, request.width, request.height, largest.frames, largest.width,
        largest.height);
  }
  if (order.encoder.empty()) order.encoder = encoder_;
  if (!to_stream() && !noted_odd_) {
    const auto [width, height] = media::coded_size(order.encoder, request.width, request.height);
    noted_odd_ = width != request.width || height != request.height;
    if (noted_odd_)
      log_warning(
          "{} cannot hold {}x{}: the last column or row is repeated, the mp4 is {}x{}; with -o - "
          "or "
          "--encoder ffv1 nothing is added",
          order.encoder, request.width, request.height, width, height);
  }
  to_rational(request.fps);  // refuses a rate now, not after the clip was made
  const bool named = !order.name.empty();
  for (;; ++request.seed) {
    if (!named) {
      const std::string words = slug(request.prompt);
      order.name =
          words + (words.empty() ? "" : "-") + hash_hex(dump_json(describe(order))).substr(0, 16);
    }
    if (names_.insert(order.name).second) return;
    // A bare prompt that comes again means another clip; a name or a seed of its own says which.
    if (named) fail("the name '{}' is taken by another prompt of this run", order.name);
    if (order.own_seed) fail("the same clip was asked for before");
  }
}

/// All that decides the bytes of the clip: its hash is the address.
Json Run::describe(const ClipOrder& order) const {
  const generate::ClipRequest& request = order.request;
  const generate::SampleOptions& sampling = order.sampling;
  const models::LoadedModel& model = generator_.model();
  Json record = {{"prompt", request.prompt},
                 {"negative_prompt", request.negative},
                 {"seed", request.seed},
                 {"frames", request.frames},
                 {"width", request.width},
                 {"height", request.height},
                 {"fps", request.fps},
                 {"sampler", generate::to_string(sampling.sampler)},
                 {"steps", sampling.steps},
                 {"guidance", sampling.guidance},
                 {"sigma_min", sampling.sigma_min},
                 {"sigma_max", sampling.sigma_max},
                 {"weights", model.ema ? "ema" : "model"},
                 {"model_hash", model_hash_}};
  if (job_.fp8.any()) record["fp8"] = models::fp8_name(job_.fp8);
  // Where nothing is said of them, it was f32 on the CPU.
  if (model.compute != DType::f32) record["compute"] = "bf16";
  if (job_.device == Device::cuda) record["device"] = "cuda";
  if (!to_stream())
    record.update({{"encoder", order.encoder}, {"quality", order.quality.value_or(job_.quality)}});
  return record;
}

/// Runs on worker threads.
Result Run::make(ClipOrder& order) const {
  Result result;
  if (order.error.empty()) {
    try {
      const Json facts = describe(order);
      result.record = {{"kind", "clip"}, {"path", path_of(order.name, ".mp4")}};
      result.record.update(facts);
      result.record["name"] = order.name;
      result.record["model"] = generator_.model().folder;
      result.record["address"] = hash_hex(dump_json(facts));
      if (fp8_error_) result.record["fp8_error"] = *fp8_error_;
      if (!to_stream()) {
        const auto [width, height] =
            media::coded_size(order.encoder, order.request.width, order.request.height);
        if (width != order.request.width || height != order.request.height)
          result.record.update({{"coded_width", width}, {"coded_height", height}});
      }
      if (to_stream() || job_.force || !is_there(result.record, order.name)) {
        result.pixels = generator_.generate(order.request, order.sampling);
        if (!to_stream()) {
          result.mp4 = encode(result.pixels, order);
          result.pixels = {};
          result.record["bytes"] = result.mp4.size();
          result.record["xxh3"] = hash_hex(result.mp4);
        }
      }
      for (const auto& [key, value] : order.extra.items())
        if (!result.record.contains(key)) result.record[key] = value;
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      order.error = error.what();
    }
  }
  result.order = std::move(order);
  return result;
}

/// Whether the clip that `record` describes was written before and is unharmed; then its size and
/// hash are put into the record.
bool Run::is_there(Json& record, const std::string& name) const {
  const std::string side = path_of(name, ".json"), mp4 = path_of(name, ".mp4");
  if (!io::file_exists(side) || !io::file_exists(mp4)) return false;
  try {
    const Json known = parse_json(io::read_file(side), side);
    const auto address = get_string(known, "address"), hash = get_string(known, "xxh3");
    if (!address || *address != record["address"] || !hash || io::hash_file(mp4) != *hash)
      return false;
    record["bytes"] = need_integer(known, "bytes", side);
    record["xxh3"] = *hash;
    return true;
  } catch (const Stopped&) {
    throw;
  } catch (const Error&) {
    return false;  // damaged: made again
  }
}

std::string Run::encode(const generate::GeneratedClip& clip, const ClipOrder& order) const {
  const Rational rate = to_rational(order.request.fps);
  media::EncodeOptions options;
  options.encoder = order.encoder;
  options.quality = order.quality.value_or(job_.quality);
  options.width = clip.width;
  options.height = clip.height;
  options.frame_rate = rate;
  options.time_base = {rate.den, rate.num};
  media::Encoder encoder(options);
  for (int frame = 0; frame < clip.frames; ++frame)
    encoder.add(frame_of(clip, frame), frame);
  return encoder.finish();
}

/// In the order of the prompts, on one thread.
void Run::hand_over(Result& result) {
  ClipOrder& order = result.order;
  if (order.error.empty() && to_stream()) write_stream(result);
  if (!order.error.empty()) {
    add_error(order);
    return;
  }
  if (!to_stream()) {
    if (!result.mp4.empty()) io::write_file(path_of(order.name, ".mp4"), result.mp4);
    io::update_file(path_of(order.name, ".json"), dump_json_pretty(result.record));
    manifest_.write(result.record);
    records_.push_back(std::move(result.record));
  }
  ++made_;
  progress_.add();
}

void Run::write_stream(Result& result) {
  const generate::GeneratedClip& clip = result.pixels;
  const Rational rate = to_rational(result.order.request.fps);
  if (!y4m_) {
    stream_geometry_ = {clip.width, clip.height, rate};
    y4m_.emplace([this](std::string_view bytes) { stream_.write_all(bytes.data(), bytes.size()); },
                 clip.width, clip.height, rate, media::Y4mChroma::yuv444);
  } else if (stream_geometry_ != std::tuple(clip.width, clip.height, rate)) {
    result.order.error = "its size or rate differs from the first clip's: a stream has one";
    return;
  }
  for (int frame = 0; frame < clip.frames; ++frame)
    y4m_->add(frame_of(clip, frame));
}

void Run::add_error(const ClipOrder& order) {
  ++errors_;
  if (error_log_) {
    error_log_->add(order.where, order.error);
  } else {
    log_warning("{}: {}", order.where, order.error);
  }
}

long Run::run(Slots& slots) {
  progress_.start("clips", 0);
  for_each_ordered<ClipOrder, Result>(
      slots, [this] { return next_order(); }, [this](ClipOrder& order) { return make(order); },
      [this](Result& result) { hand_over(result); });
  if (error_log_) error_log_->finish();
  if (made_ == 0 && errors_ == 0) fail("no prompts: nothing was asked for");
  if (made_ == 0) fail("no clip was made: every prompt failed");
  if (to_stream()) return errors_;
  std::vector<std::string> paths;
  for (const Json& record : records_)
    paths.push_back(record["path"].get<std::string>());
  io::update_file(io::join_path(job_.output, "contact-sheet.png"),
                  media::encode_png(contact_sheet(paths)));
  if (!job_.report.empty())
    write_generation_report(job_.report, records_, generator_.model(), job_.dataset);
  return errors_;
}

}  // namespace

long generate_clips(const GenerateJob& job, Slots& slots, Progress& progress) {
  return Run(job, progress).run(slots);
}

}  // namespace vfm::jobs
