// The XML answers of servers that speak S3: elements with text, without attributes that matter.
//
// The parser reads what S3 answers, within fixed limits, and refuses all else: document types,
// entities other than the five of XML and numbers, and more than 16 levels. It keeps nothing.
// Source: Extensible Markup Language (XML) 1.0, W3C. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::io {

/// Calls `end` at the end of each element, with the names from below the root to the element,
/// joined by '/' ("Contents/Key"), and with the element's own text. The root has the path "".
/// Throws Error{answer} if this is not such XML.
void read_answer_xml(
    std::string_view text,
    const std::function<void(const std::string& path, const std::string& text)>& end);

/// The code and the message of an error's answer, at most 300 bytes each and safe to print. Both
/// are empty if the text is no such answer.
struct AnswerError {
  std::string code, message;
  std::string region;  ///< The bucket's region, if the answer names it.
};
AnswerError read_answer_error(std::string_view text);

/// One page of a list of objects (ListObjectsV2).
struct ListPage {
  struct Entry {
    std::string key;  ///< Ends in a slash for a folder.
    std::uint64_t bytes = 0;
    std::string version;
    double modified = 0;  ///< Seconds since 1970, or 0.
  };
  std::vector<Entry> entries;  ///< In order of bytes.
  bool more = false;
  std::string next;  ///< Token of the next page.
};
ListPage read_list_page(std::string_view text);

/// One page of a list of multipart uploads that were not completed.
struct UploadsPage {
  struct Entry {
    std::string key, id;
    double began = 0;  ///< Seconds since 1970.
  };
  std::vector<Entry> entries;
  bool more = false;
  std::string next_key, next_id;
};
UploadsPage read_uploads_page(std::string_view text);

/// Returns the text of the first element of this path, or "".
std::string answer_element(std::string_view text, std::string_view path);
/// Returns an ETag without its quotes.
std::string version_of_etag(std::string_view etag);
/// Returns the seconds since 1970 of "2026-11-30T12:00:00.000Z", or of an HTTP date such as "Mon,
/// 30 Nov 2026 12:00:00 GMT". Returns 0 for another text.
double parse_answer_time(const std::string& text);

}  // namespace vfm::io
