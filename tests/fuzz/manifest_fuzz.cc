// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/json.h"
#include "fuzz.h"
#include "io/manifest.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try {
    const vfm::io::Record record = vfm::io::parse_record(line, "line 1");
    if (record.kind == "shard" && record.json->contains("path")) vfm::io::column_tars(record);
    vfm::dump_json(record.json);
  } catch (const vfm::Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "a/b.mp4", "x.tar",
      R"({"kind":"shard","path":"c/x.tar","samples":3,"columns":{"clip":"a.tar","caption":"b.tar"}})",
      R"({"kind":"video","path":"\u00e9\ud83d\ude00.mp4","n":[1,2.5e3,{"a":null}]})"};
}
