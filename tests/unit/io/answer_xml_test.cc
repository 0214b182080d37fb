// What servers that speak S3 answer, and what is no such answer.
// SPDX-License-Identifier: Apache-2.0
#include "io/remote/answer_xml.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace vfm;
using namespace vfm::io;

namespace {

/// Returns "path=text" of all elements, joined by commas.
std::string xml_elements(std::string_view text) {
  std::string all;
  read_answer_xml(text, [&](const std::string& path, const std::string& value) {
    all += (all.empty() ? "" : ",") + path + "=" + value;
  });
  return all;
}

}  // namespace

TEST_CASE("elements of an answer have paths and text") {
  CHECK(xml_elements("<?xml version=\"1.0\"?>\n<!-- a > b -->\n<R a='>'><K>x</K><C><K/></C></R>\n") ==
        "K=x,C/K=,C=,=");
  CHECK(xml_elements("<R>a&amp;&lt;&gt;&quot;&apos;&#65;&#x20AC;<![CDATA[<&]]></R>") ==
        "=a&<>\"'A\xe2\x82\xac<&");
}

TEST_CASE("what is not the XML of an answer is an error") {
  for (const char* text :
       {"", "text", "<R>", "<R></S>", "<R/><S/>", "</R>", "<R>&unknown;</R>", "<R>&#0;</R>",
        "<R>&#xD800;</R>", "<R>&amp</R>", "<!DOCTYPE R><R/>", "<R", "<R><!-- </R>", "<></>",
        "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>"}) {
    INFO(text);
    CHECK_THROWS_AS(xml_elements(text), Error);
  }
}

TEST_CASE("an error's answer gives its code and message, safe to print") {
  const AnswerError error = read_answer_error(
      "<Error><Code>NoSuchKey</Code><Message>Not\x1b[1m here</Message><Key>k</Key></Error>");
  CHECK(error.code == "NoSuchKey");
  CHECK(error.message == "Not?[1m here");
  CHECK(read_answer_error("<html>").code.empty());
  CHECK(
      read_answer_error("<Error><Code>" + std::string(1000, 'x') + "</Code></Error>").code.size() ==
      300);
}

TEST_CASE("a page of a list has objects and folders in order of bytes") {
  const ListPage page = read_list_page(
      "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>t</NextContinuationToken>"
      "<Contents><Key>a+b%2Bc</Key><Size>7</Size><ETag>&quot;e&quot;</ETag></Contents>"
      "<Contents><Key>c</Key><Size>0</Size></Contents>"
      "<CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes></ListBucketResult>");
  REQUIRE(page.entries.size() == 3);
  CHECK(page.entries[0].key == "a b+c");
  CHECK(page.entries[0].bytes == 7);
  CHECK(page.entries[0].version == "e");
  CHECK(page.entries[1].key == "b/");
  CHECK(page.more);
  CHECK(page.next == "t");
  CHECK_THROWS_AS(read_list_page("<R><IsTruncated>true</IsTruncated></R>"), Error);
  CHECK_THROWS_AS(read_list_page("<R><Contents><Size>x</Size></Contents></R>"), Error);
}

TEST_CASE("a page of uploads tells their age and where the next page begins") {
  const UploadsPage page = read_uploads_page(
      "<R><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
      "<NextKeyMarker>a%20b</NextKeyMarker><NextUploadIdMarker>2</NextUploadIdMarker>"
      "<Upload><Key>a%20b</Key><UploadId>1</UploadId>"
      "<Initiated>1970-01-01T00:01:00.000Z</Initiated></Upload>"
      "<Upload><Key>a%20b</Key><UploadId>2</UploadId></Upload></R>");
  REQUIRE(page.entries.size() == 2);
  CHECK(page.entries[0].key == "a b");
  CHECK(page.entries[0].id == "1");
  CHECK(page.entries[0].began == 60);
  CHECK(page.entries[1].began == 0);  // Not told.
  CHECK(page.more);
  CHECK(page.next_key == "a b");
  CHECK(page.next_id == "2");
  CHECK_FALSE(read_uploads_page("<R><IsTruncated>false</IsTruncated></R>").more);
  CHECK_THROWS_AS(read_uploads_page("<R><IsTruncated>true</IsTruncated></R>"), Error);
}

TEST_CASE("times of answers are read in both forms") {
  CHECK(parse_answer_time("2013-05-24T00:00:00.000Z") == 1369353600);
  CHECK(parse_answer_time("Fri, 24 May 2013 00:00:00 GMT") == 1369353600);
  CHECK(parse_answer_time("yesterday") == 0);
  CHECK(version_of_etag("\"a\"") == "a");
  CHECK(version_of_etag("W/\"a\"") == "a");
  CHECK(version_of_etag("a") == "a");
}
