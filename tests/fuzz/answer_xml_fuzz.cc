// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "fuzz.h"
#include "io/remote/answer_xml.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  vfm::io::read_answer_error(text);
  vfm::io::parse_answer_time(std::string(text));
  for (const auto read : {+[](std::string_view from) { vfm::io::read_list_page(from); },
                          +[](std::string_view from) { vfm::io::read_uploads_page(from); }})
    try {
      read(text);
    } catch (const vfm::Error&) {
    }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>a &amp; b</Message></Error>",
      "<R><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
      "<EncodingType>url</EncodingType><Contents><Key>a%20b</Key><Size>7</Size>"
      "<ETag>&quot;e&quot;</ETag></Contents><CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes>"
      "</R>",
      "<R><Upload><Key>k</Key><UploadId>u</UploadId><Initiated>2013-05-22T00:00:00.000Z"
      "</Initiated></Upload><NextKeyMarker>k</NextKeyMarker></R>",
      "<a b='>'><!-- --><![CDATA[<&]]>&#x20AC;<c/></a>"};
}
