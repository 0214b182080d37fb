// SPDX-License-Identifier: Apache-2.0
#include "generate/decode/dealt_latents.h"

#include <utility>

#include "base/json.h"
#include "generate/request/parcel.h"

namespace vfm::generate {

std::string pack_dealt(const std::vector<DealtLatents>& inputs, bool more, bool few) {
  ClipParcel parcel;
  parcel.add(more);
  parcel.add(few);
  parcel.add(inputs.size());
  for (const DealtLatents& input : inputs) {
    parcel.add(input.record.kind);
    parcel.add(dump_json(input.record.json));
    parcel.add(input.record.where);
    parcel.add(input.where);
    parcel.add(input.error);
  }
  return parcel.take();
}

std::vector<DealtLatents> unpack_dealt(std::string_view bytes, bool& more, bool& few) {
  ClipParcelReader parcel(bytes);
  std::size_t count = 0;
  parcel.read(more);
  parcel.read(few);
  parcel.read(count);
  std::vector<DealtLatents> inputs(count);
  for (DealtLatents& input : inputs) {
    std::string json;
    parcel.read(input.record.kind);
    parcel.read(json);
    input.record.json = parse_json(json, "a line for another rank");
    parcel.read(input.record.where);
    parcel.read(input.where);
    parcel.read(input.error);
  }
  return inputs;
}

std::string pack_decoded(const std::vector<DecodedLatents>& results) {
  ClipParcel parcel;
  for (const DecodedLatents& result : results) {
    for (const std::string* const text : {&result.error, &result.name, &result.mp4})
      parcel.add(*text);
    parcel.add(dump_json(result.record));
    parcel.add(result.seconds);
    parcel.add(result.together);
    if (!result.together) continue;
    const Latent& latent = result.latent;
    parcel.add(result.folder);
    for (const int size : {latent.channels, latent.frames, latent.height, latent.width})
      parcel.add(size);
    parcel.add(latent.values);
  }
  return parcel.take();
}

std::vector<DecodedLatents> unpack_decoded(std::string_view bytes,
                                           std::vector<DealtLatents> inputs) {
  ClipParcelReader parcel(bytes);
  std::vector<DecodedLatents> results(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    DecodedLatents& result = results[i];
    result.input = std::move(inputs[i]);
    for (std::string* const text : {&result.error, &result.name, &result.mp4})
      parcel.read(*text);
    std::string record;
    parcel.read(record);
    result.record = parse_json(record, "another rank's record");
    parcel.read(result.seconds);
    parcel.read(result.together);
    if (!result.together) continue;
    Latent& latent = result.latent;
    parcel.read(result.folder);
    for (int* const size : {&latent.channels, &latent.frames, &latent.height, &latent.width})
      parcel.read(*size);
    parcel.read(latent.values);
  }
  return results;
}

std::string pack_shared(const SharedDecoding& work) {
  ClipParcel parcel;
  parcel.add(work.folder);
  parcel.add(work.values);
  for (const int size : {work.frames, work.height, work.width})
    parcel.add(size);
  return parcel.take();
}

SharedDecoding unpack_shared(std::string_view bytes) {
  ClipParcelReader parcel(bytes);
  SharedDecoding work;
  parcel.read(work.folder);
  parcel.read(work.values);
  for (int* const size : {&work.frames, &work.height, &work.width})
    parcel.read(*size);
  return work;
}

}  // namespace vfm::generate
