// The JSON files of folders with an encoder of texts, pictures or videos: config.json,
// preprocessor_config.json, video_preprocessor_config.json, and what sentence-transformers has
// beside them. An input is a file's name on its first line, and its bytes; the other files of the
// folder are sound. Whatever passes encodes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "fuzz.h"
#include "io/file.h"
#include "models/encoder/picture_encoder.h"
#include "models/encoder/sentence_encoder.h"
#include "support/temporary_folder.h"

namespace {

using namespace vfm;
namespace fs = std::filesystem;

const std::string kGolden = VFM_GOLDEN;
const std::vector<std::string> kPictures = {"picture_encoders/clip", "picture_encoders/dinov2",
                                            "picture_encoders/siglip", "picture_encoders/siglip2",
                                            "video_encoders/vjepa2"};
const std::vector<std::string> kSentences = {"sentences/bert", "sentences/clip",
                                             "sentences/siglip"};

/// The files that are tried: "picture_encoders/clip/config.json".
std::vector<std::string> json_files() {
  std::vector<std::string> files;
  for (const auto& folders : {kPictures, kSentences})
    for (const std::string& folder : folders)
      for (const char* name :
           {"config.json", "preprocessor_config.json", "video_preprocessor_config.json",
            "modules.json", "1_Pooling/config.json", "sentence_bert_config.json",
            "tokenizer_config.json"})
        if (fs::exists(kGolden + "/" + folder + "/" + name)) files.push_back(folder + "/" + name);
  return files;
}

void try_pictures(const std::string& folder) {
  const auto encoder = models::make_picture_encoder(folder, Device::cpu, DType::f32, 0);
  const std::vector<std::uint8_t> rgb(3 * 5 * 4, 7);
  const models::PictureView picture{5, 4, rgb};
  encoder->encode(
      std::vector<models::PictureView>(static_cast<std::size_t>(encoder->frames()), picture));
}

void try_sentences(const std::string& folder) {
  models::make_sentence_encoder(folder, 16, DType::f32, {})->encode("a red fox");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder copy;
  static const std::vector<std::string> files = json_files();
  static const bool copied = [] {
    for (const char* name : {"picture_encoders", "sentences", "video_encoders"})
      fs::copy(kGolden + "/" + name, copy / name, fs::copy_options::recursive);
    return true;
  }();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string file = text.substr(0, end);
  if (!copied || std::find(files.begin(), files.end(), file) == files.end()) return 0;
  const std::string sound = io::read_file(copy / file);
  copy.write(file, std::string_view(text).substr(std::min(end + 1, text.size())));
  try {
    const bool pictures = !file.starts_with("sentences/");
    const std::string folder = copy / file.substr(0, file.find('/', file.find('/') + 1));
    pictures ? try_pictures(folder) : try_sentences(folder);
  } catch (const Error&) {
  }
  copy.write(file, sound);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const std::string& file : json_files())
    seeds.push_back(file + "\n" + io::read_file(kGolden + "/" + file));
  return seeds;
}
