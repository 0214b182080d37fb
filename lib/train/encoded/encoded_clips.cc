// SPDX-License-Identifier: Apache-2.0
#include "train/encoded/encoded_clips.h"

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/philox.h"
#include "tensor/device.h"
#include "train/data/packed_folder.h"
#include "train/data/shared_files.h"
#include "train/encoded/measured_scale.h"

namespace vfm::train {
namespace {

/// Of samples that validation reads again and again.
constexpr std::size_t kKeptBytes = std::size_t{128} << 20;
/// Before the values of an array, in files of this program and of NumPy.
constexpr std::int64_t kNpyHead = 128;
/// Texts that are looked at to find what made them, where the first ones cannot be read.
constexpr std::size_t kLooks = 16;

data::PixelOptions clip_options_of(const Recipe& recipe, const Encoders& encoders) {
  data::PixelOptions clip;
  clip.size = recipe.data.size;
  clip.frames = recipe.data.frames;
  clip.windows = recipe.data.windows;
  clip.overlap = recipe.data.overlap;
  if (clip.overlap >= clip.frames)
    fail_usage(
        "'data.overlap' is {}, and 'data.frames' {}: windows share fewer frames than they have",
        clip.overlap, clip.frames);
  if (recipe.data.fps > 0) clip.fps = nearest_rate(recipe.data.fps);
  clip.seed = recipe.train.seed;
  clip.flip = recipe.data.flip;
  clip.time_step = encoders.time_factor();
  clip.multiple = 2 * encoders.space_factor();  // as vfm-pack: patches of 2 x 2 latent pixels
  return clip;
}

std::size_t bytes_of_sample(const CleanSample& sample) {
  return sizeof(float) * (sample.x0.size() + sample.text.size()) +
         sizeof(std::int32_t) * sample.codes.size();
}

/// Refuses a scale that the user names for a model that has another one.
void check_scale(const RunOptions& options, const Encoders& encoders) {
  const std::optional<models::LatentScale>& base = options.base.scale;
  if (options.encoders.scale.empty() || !base) return;
  if (base->channels() != static_cast<std::size_t>(encoders.channels())) return;  // not taken
  const models::LatentScale given =
      encoders.known_scale()->whitened(options.recipe.diffusion.whitening);
  if (given.to_json() == base->to_json()) return;
  fail_usage(
      "the model to begin from has another mean and deviation of latents than '{}': leave "
      "--latent-scale out",
      options.encoders.scale);
}

}  // namespace

EncodedClips::EncodedClips(const RunOptions& options, const std::string& split, Fit fit_recipe)
    : options_(options),
      fit_(fit_recipe),
      encoders_(std::make_shared<Encoders>(options.encoders, options.device)),
      listing_(clip_listing_of(options, encoders_->has_text())),
      clips_(options.data, split, listing_),
      clip_(clip_options_of(options.recipe, *encoders_)) {
  check_scale(options, *encoders_);
  list(split);
  if (size() == 0) fail_usage("'{}' has no clips in '{}'", options.data, split);
}

EncodedClips::EncodedClips(const EncodedClips& other, const std::string& split)
    : options_(other.options_),
      fit_(other.fit_),
      encoders_(other.encoders_),
      listing_(other.listing_),
      clips_(options_.data, split, listing_),
      clip_(other.clip_) {
  list(split);
}

std::unique_ptr<Dataset> EncodedClips::other_split(const std::string& split) const {
  return std::unique_ptr<Dataset>(new EncodedClips(*this, split));
}

void EncodedClips::list(const std::string& split) {
  info_ = Json{{"version", 1},
           {"tokenizer", encoders_->tokenizer_config().to_json()},
           {"text_encoder", nullptr},
           {"channels", encoders_->channels()},
           {"clips", clips_.info().at("clips")}};
  if (encoders_->vocabulary() > 0) info_["vocabulary"] = encoders_->vocabulary();
  find_text_encoder(split);
  std::vector<data::Entry> entries;
  for (std::size_t i = 0; i < clips_.clips().size(); ++i) {
    const data::ClipFacts& facts = clips_.clips()[i].facts;
    if (facts.frames < 1 || facts.width < 1 || facts.height < 1) unknown_.insert(i);
    plan(i, entries);
  }
  index_ = data::list_index(std::move(entries));
}

std::vector<std::string> EncodedClips::remarks() const {
  std::vector<std::string> all;
  if (!unknown_.empty())
    all.push_back(
        fmt::format("the index of the dataset does not say frames, width and height of {} of '{}'",
                    counted(std::ssize(unknown_), "clip"), options_.data));
  if (!options_.recipe.takes_text() && !text_identity_->is_null())
    all.push_back(text_left_aside(options_.data));
  return all;
}

/// The windows of clip `i`, and the sizes of what is made of them. Of a clip whose sizes are not
/// known those of a small picture: it is planned, and left out when it is read.
void EncodedClips::plan(std::size_t i, std::vector<data::Entry>& entries) {
  const data::StoredClip& clip = clips_.clips()[i];
  const data::ClipFacts& facts = clip.facts;
  const bool known = !unknown_.contains(i);
  const data::Bucket bucket =
      known ? data::bucket_of(facts.width, facts.height, clip_.size, clip_.multiple)
            : data::Bucket{clip_.multiple, clip_.multiple};
  const std::int64_t available = known ? data::frames_at(facts, clip_.fps) : 1;
  const data::WindowPlan windows =
      data::plan_windows(available, {clip_.frames, clip_.time_step, clip_.windows, clip_.overlap});
  data::Entry entry;
  entry.shard = std::to_string(clip.shard);
  entry.row = clip.row;
  entry.height = bucket.height / encoders_->space_factor();
  entry.width = bucket.width / encoders_->space_factor();
  if (clip.embedding_bytes > 0 && text_width_ > 0)
    entry.text_tokens = static_cast<int>(std::clamp<std::int64_t>(
        (clip.embedding_bytes - kNpyHead) / (2 * text_width_), 0, 1 << 20));
  if (encoders_->has_text() && entry.text_tokens == 0) {  // at most
    const std::int64_t bytes = clip.caption_bytes > 0 ? clip.caption_bytes + 1 : 1 << 20;
    entry.text_tokens = static_cast<int>(std::min<std::int64_t>(encoders_->most_tokens(), bytes));
  }
  for (std::int64_t w = 0; w < windows.windows; ++w) {
    const int frames = windows.frames_of(w);
    entry.key = data::window_key(clip.key, w, windows.windows);
    entry.frames = 1 + (frames - 1) / clip_.time_step;
    entry.fps = frames == 1 ? 0 : available < facts.frames ? clip_.fps.value() : facts.fps;
    entries.push_back(entry);
    places_.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(w), available});
  }
}

/// What made the embeddings that the clips have, or makes those of their captions. Of a model that
/// has no text they are not taken.
void EncodedClips::find_text_encoder(const std::string& split) {
  const std::string name = text_encoder_given_as(options_.data, split, listing_);
  const auto* const given = data::GivenTexts::find(name);
  Json found = given != nullptr && *given ? parse_json(**given, name)
                                          : text_encoder_of(clips_, listing_.texts);
  if (encoders_->has_text()) {
    const Json own = encoders_->text_config()->to_json();
    if (!found.is_null() && identity_of(found) != identity_of(own))
      fail_usage(
          "the clips of '{}' have embeddings of another text encoder, {}, than --text names: {}",
          options_.data, dump_json(found), dump_json(own));
    if (found.is_null()) found = own;
  }
  text_identity_ = identity_of(found);
  text_width_ = text_width({{"text_encoder", found}});
  if (options_.recipe.takes_text())
    info_["text_encoder"] = found;
  else
    listing_.texts = {{}, false};
}

std::string EncodedClips::fingerprint() const {
  Json info = info_;
  info["tokenizer"] = identity_of(encoders_->tokenizer_identity());
  info["text_encoder"] = text_identity_;
  return index_->fingerprint(info);
}

Json EncodedClips::facts() const {
  Json facts = latent_facts(*this, encoders_->scale() ? encoders_->scale()->to_json() : Json());
  facts["tokenizer"] = encoders_->tokenizer_json();
  return facts;
}

std::vector<EncoderCost> EncodedClips::costs() const {
  return encoder_costs(*encoders_, *index_);
}

double EncodedClips::device_bytes() const {
  const std::lock_guard lock(mutex_);
  if (!device_bytes_) device_bytes_ = encoder_bytes(costs());
  return *device_bytes_;
}

void EncodedClips::settle(dist::World& world, const Json& kept) {
  encoders_->load(world, options_.recipe.takes_text());
  if (encoders_->vocabulary() > 0) return;
  const auto channels = static_cast<std::size_t>(encoders_->channels());
  const std::optional<models::LatentScale>& base = options_.base.scale;
  const double whitening = options_.recipe.diffusion.whitening;
  if (kept.is_object() && kept.contains("latent_scale") && kept["latent_scale"].is_object()) {
    const auto scale = models::LatentScale::from_json(kept["latent_scale"], "the run's train.json");
    if (encoders_->scale_given() && !base &&
        encoders_->known_scale()->whitened(whitening).to_json() != scale.to_json())
      fail_usage(
          "the run '{}' has another mean and deviation of latents than are given now: leave "
          "--latent-scale out, choose another folder (-o), or start over with --force",
          options_.out);
    encoders_->use(scale);
  } else if (base && base->channels() == channels) {
    encoders_->use(*base);
  } else {
    const auto known = encoders_->known_scale();
    encoders_->use((known ? *known : measure(world)).whitened(whitening));
  }
}

models::LatentScale EncodedClips::measure(dist::World& world) const {
  return measure_scale(world, encoders_->channels(), size(), options_.threads,
                       [this](std::size_t i) {
                         return encode(i, SeenAt{}, {{}, false}).x0;
                       });
}

std::int64_t EncodedClips::about_bytes(std::size_t i) const {
  return is_remote() ? clips_.clips()[places_.at(i).clip].bytes : Dataset::about_bytes(i);
}

std::uint32_t EncodedClips::shard_of(std::size_t i) const {
  return static_cast<std::uint32_t>(clips_.clips()[places_.at(i).clip].shard);
}

/// The clips of the windows.
void EncodedClips::fetch(std::span<data::SampleBytes> parts) const {
  std::vector<data::SampleBytes> clips;
  for (const data::SampleBytes& part : parts)
    clips.push_back({places_.at(part.sample).clip, part.begin, part.end, {}, {}});
  clips_.fetch(clips);
  for (std::size_t k = 0; k < clips.size(); ++k) {
    parts[k].bytes = std::move(clips[k].bytes);
    parts[k].failure = std::move(clips[k].failure);
  }
}

CleanSample EncodedClips::read_fetched(std::size_t i, const std::string& bytes,
                                       std::optional<SeenAt> seen) const {
  return make(i, seen, &bytes);
}

CleanSample EncodedClips::read_sample(std::size_t i, std::optional<SeenAt> seen) const {
  return make(i, seen, nullptr);
}

CleanSample EncodedClips::make(std::size_t i, std::optional<SeenAt> seen,
                               const std::string* fetched) const {
  if (!seen) {
    const std::lock_guard lock(mutex_);
    if (const auto found = kept_.find(i); found != kept_.end()) return found->second;
  }
  CleanSample sample = encode(i, seen, listing_.texts, fetched);
  if (encoders_->scale())
    encoders_->scale()->to_model(sample.x0, sample.frames, options_.recipe.diffusion.process);
  if (!seen) {
    const std::lock_guard lock(mutex_);
    const std::size_t bytes = bytes_of_sample(sample);
    if (kept_bytes_ + bytes <= kKeptBytes && kept_.emplace(i, sample).second) kept_bytes_ += bytes;
  }
  return sample;
}

/// In the tokenizer's units.
CleanSample EncodedClips::encode(std::size_t i, std::optional<SeenAt> seen,
                                 const data::TextColumns& texts, const std::string* fetched) const {
  const data::Entry sizes = this->sizes(i);
  const Place& at = places_.at(i);
  const std::string& key = clips_.clips().at(at.clip).key;
  if (unknown_.contains(at.clip))
    fail("{}: the dataset's index does not say its frames, width and height", clips_.name(at.clip));
  data::PixelOptions clip = clip_;
  clip.only = static_cast<int>(at.window);
  clip.planned = at.available;
  clip.bucket = {sizes.width * encoders_->space_factor(), sizes.height * encoders_->space_factor()};
  double place = 0;
  if (seen) {
    if (options_.recipe.data.crop == "random") clip.crop = data::CropMode::random;
    clip.step = seen->epoch;
    place = Random(clip.seed, Purpose::caption, seen->epoch, random_key(key)).uniform(0);
  }
  data::TextedClip read = clips_.read(at.clip, clip, texts, place, fetched);
  const data::ClipPixels& pixels = read.pixels;
  if (1 + (pixels.frames - 1) / clip.time_step != sizes.frames)
    fail("{}: it gives {}, and by the dataset's index others", clips_.name(at.clip),
         counted(pixels.frames, "frame"));
  CleanSample sample{
      index_->entry(i).key, sizes.frames, sizes.height, sizes.width, pixels.fps, {}, {}, {}, {},
      pixels.bytes};
  if (options_.gpu != nullptr) return sample;
  try {
    if (encoders_->vocabulary() > 0)
      sample.codes = encoders_->codes(pixels);
    else
      sample.x0 = encoders_->latent(pixels);
    sample.text = text_of(at.clip, std::move(read.text));
  } catch (const GpuError&) {
    throw;
  } catch (const Error& error) {
    fail("{}: {}", clips_.name(at.clip), error.what());
  }
  return sample;
}

std::vector<float> EncodedClips::text_of(std::size_t clip, data::SampleText text) const {
  if (!text.caption.empty()) return encoders_->text(text.caption);
  if (text.values.empty()) return {};
  if (identity_of(text.encoder) != text_identity_)
    fail("the text encoder of sample '{}', {}, is not that of the first clips, {}",
         clips_.clips()[clip].key, dump_json(text.encoder), dump_json(info_["text_encoder"]));
  return std::move(text.values);
}

Json text_encoder_of(const data::ClipSet& clips, const data::TextColumns& texts) {
  Json found;
  std::size_t looks = 0;
  for (std::size_t i = 0; i < clips.clips().size() && found.is_null() && looks < kLooks; ++i) {
    if (clips.clips()[i].embedding_bytes == 0) continue;
    ++looks;
    try {
      found = clips.text(i, texts, 0).encoder;
    } catch (const Error& error) {
      log_info("{}", error.what());  // it will be left out when it is read
    }
  }
  return found;
}

std::string text_encoder_given_as(const std::string& directory, const std::string& split,
                                  const data::ClipListing& listing) {
  return "text encoder of " + data::ClipSet::given_as(directory, split, listing);
}

std::unique_ptr<Dataset> open_encoded(const RunOptions& options, const std::string& split,
                                      EncodedClips::Fit fit) {
  if (options.encoders.tokenizer.empty()) return nullptr;
  return std::make_unique<EncodedClips>(options, split, fit);
}

}  // namespace vfm::train
