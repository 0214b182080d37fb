// SPDX-License-Identifier: Apache-2.0
#include "generate/request/request_parcel.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/json.h"
#include "generate/request/parcel.h"

namespace vfm::generate {
namespace {

void add_given(ClipParcel& parcel, const GivenFile& file) {
  parcel.add(file.path);
  parcel.add(file.xxh3.has_value());
  parcel.add(file.xxh3.value_or(""));
}

void read_given(ClipParcelReader& parcel, GivenFile& file) {
  bool known = false;
  std::string hash;
  parcel.read(file.path);
  parcel.read(known);
  parcel.read(hash);
  if (known) file.xxh3 = hash;
}

void add_text(ClipParcel& parcel, const std::shared_ptr<const text::TokenEmbeddings>& text) {
  parcel.add(text != nullptr);
  if (!text) return;
  parcel.add(text->values);
  parcel.add(text->tokens);
  parcel.add(text->dim);
}

void read_text(ClipParcelReader& parcel, std::shared_ptr<const text::TokenEmbeddings>& text) {
  bool there = false;
  parcel.read(there);
  if (!there) return;
  text::TokenEmbeddings found;
  parcel.read(found.values);
  parcel.read(found.tokens);
  parcel.read(found.dim);
  text = std::make_shared<const text::TokenEmbeddings>(std::move(found));
}

void add_clip(ClipParcel& parcel, const ClipRequest& clip) {
  parcel.add(clip.prompt);
  parcel.add(clip.negative);
  parcel.add(clip.seed);
  for (const int size : {clip.frames, clip.height, clip.width})
    parcel.add(size);
  parcel.add(clip.fps);
  parcel.add(clip.given ? clip.given->frames : 0);
  if (clip.given) parcel.add(clip.given->pixels);
  parcel.add(clip.noise != nullptr);
  if (clip.noise) parcel.add(*clip.noise);
  add_text(parcel, clip.embedding);
  add_text(parcel, clip.negative_embedding);
}

void read_clip(ClipParcelReader& parcel, ClipRequest& clip) {
  parcel.read(clip.prompt);
  parcel.read(clip.negative);
  parcel.read(clip.seed);
  for (int* const size : {&clip.frames, &clip.height, &clip.width})
    parcel.read(*size);
  parcel.read(clip.fps);
  GivenFrames given;
  parcel.read(given.frames);
  if (given.frames > 0) {
    parcel.read(given.pixels);
    clip.given = std::make_shared<const GivenFrames>(std::move(given));
  }
  bool noise = false;
  parcel.read(noise);
  if (noise) {
    std::vector<float> values;
    parcel.read(values);
    clip.noise = std::make_shared<const std::vector<float>>(std::move(values));
  }
  read_text(parcel, clip.embedding);
  read_text(parcel, clip.negative_embedding);
}

void add_sampling(ClipParcel& parcel, const SampleOptions& o) {
  parcel.add(o.process);
  parcel.add(o.sampler);
  parcel.add(o.steps);
  for (const double value :
       {o.sigma_min, o.sigma_max, o.shift, o.guidance, o.augment_sigma, o.temperature, o.top_p})
    parcel.add(value);
  parcel.add(o.sigmas);
}

void read_sampling(ClipParcelReader& parcel, SampleOptions& o) {
  parcel.read(o.process);
  parcel.read(o.sampler);
  parcel.read(o.steps);
  for (double* const value : {&o.sigma_min, &o.sigma_max, &o.shift, &o.guidance, &o.augment_sigma,
                              &o.temperature, &o.top_p})
    parcel.read(*value);
  parcel.read(o.sigmas);
}

}  // namespace

std::string pack_request(const NamedRequest& request) {
  ClipParcel parcel;
  add_clip(parcel, request.clip);
  add_sampling(parcel, request.sampling);
  const GivenFiles& files = request.files;
  for (const GivenFile* file :
       {&files.condition, &files.noise, &files.embedding, &files.negative_embedding})
    add_given(parcel, *file);
  parcel.add(files.condition_frames);
  parcel.add(request.name);
  parcel.add(request.encoder);
  parcel.add(request.quality);
  parcel.add(dump_json(request.extra));
  return parcel.take();
}

NamedRequest unpack_request(std::string_view bytes) {
  ClipParcelReader parcel(bytes);
  NamedRequest request;
  read_clip(parcel, request.clip);
  read_sampling(parcel, request.sampling);
  GivenFiles& files = request.files;
  for (GivenFile* file :
       {&files.condition, &files.noise, &files.embedding, &files.negative_embedding})
    read_given(parcel, *file);
  parcel.read(files.condition_frames);
  parcel.read(request.name);
  parcel.read(request.encoder);
  parcel.read(request.quality);
  std::string extra;
  parcel.read(extra);
  request.extra = parse_json(extra, "a request's other keys");
  return request;
}

std::string pack_result(const Result& result) {
  ClipParcel parcel;
  parcel.add(result.asked.error);
  parcel.add(dump_json(result.record));
  parcel.add(result.made);
  const Latent& latent = result.latent;
  for (const int size : {latent.channels, latent.frames, latent.height, latent.width})
    parcel.add(size);
  parcel.add(latent.values);
  parcel.add(result.seconds);
  return parcel.take();
}

void unpack_result(std::string_view bytes, Result& result) {
  ClipParcelReader parcel(bytes);
  parcel.read(result.asked.error);
  std::string record;
  parcel.read(record);
  result.record = parse_json(record, "a result's record");
  parcel.read(result.made);
  Latent& latent = result.latent;
  for (int* const size : {&latent.channels, &latent.frames, &latent.height, &latent.width})
    parcel.read(*size);
  parcel.read(latent.values);
  parcel.read(result.seconds);
}

}  // namespace vfm::generate
