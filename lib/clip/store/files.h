// Stores the clips of one source as plain files: DIR/KEY.mp4 and DIR/KEY.json.
//
// DIR/NAME.files lists the files (shard/file_list.h), and is written last. Until then
// DIR/.NAME.journal lists the settings, files that are about to be written, and finished clips. The
// next run therefore knows every file of a killed run. The journal of a bucket is local
// (io/growing_file.h), and written to the bucket at intervals. A run on another machine makes the
// later clips again, with the same names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "clip/store/store.h"
#include "io/file.h"
#include "io/growing_file.h"

namespace vfm::clip {

class ClipFiles : public ClipStore {
 public:
  ClipFiles(std::string directory, const std::string& name, Json settings);
  KeptClips begin(bool keep) override;

 private:
  std::string notes_path() const override {
    return io::join_path(directory_, "." + name_ + ".journal");
  }
  std::vector<Json> read_journal() const;
  void check_files(const Json& found) const override;
  void write(const shard::Sample& sample) override;
  void write_kept() override;
  void end(Json& summary) override;
  void end_notes() override;
  std::vector<std::string> own_files(const Json& index, const InUse& in_use) override;
  std::string notes_of_removal(const Json& index) const override;

  std::string path_of(const Json& sample, const Json& file) const;
  bool whole(const Json& sample, bool by_hash) const;
  void remove(const Json& sample) const;
  void note(const Json& line);

  io::File journal_;
  std::optional<io::GrowingFile> kept_journal_;
  std::uint64_t unput_ = 0;  // bytes of clips since the journal was put
  HeldJson listed_ = HeldJson::array();
  std::deque<HeldJson> found_;  // kept samples from the journal
};

}  // namespace vfm::clip
