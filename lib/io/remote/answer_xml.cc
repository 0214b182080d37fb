// SPDX-License-Identifier: Apache-2.0
#include "io/remote/answer_xml.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>

#include "base/error.h"
#include "base/harmless.h"

namespace vfm::io {
namespace {

constexpr std::size_t kDeepest = 16, kLongestName = 64, kLongestErrorText = 300;

[[noreturn]] void no_answer_xml(std::string_view why) {
  fail_as(Cause::answer, "the server's answer is not the XML of S3: {}", why);
}

void append_character(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3f));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3f));
    byte(0x80 | (code >> 6 & 0x3f));
  }
  byte(0x80 | (code & 0x3f));
}

class AnswerXml {
 public:
  using End = std::function<void(const std::string&, const std::string&)>;
  AnswerXml(std::string_view text, const End& end) : rest_(text), end_(end) {}

  void read() {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
    while (!rest_.empty()) {
      if (rest_.front() == '<') {
        markup();
      } else {
        characters(take_until("<", false));
      }
    }
    if (depth_ > 0 || !rooted_) no_answer_xml("it ends too early");
  }

 private:
  /// Takes what is before `mark`, and the mark too. Without a mark, takes all or complains.
  std::string_view take_until(std::string_view mark, bool with_mark = true) {
    const std::size_t at = rest_.find(mark);
    if (at == rest_.npos && with_mark) no_answer_xml("it ends too early");
    const std::string_view taken = rest_.substr(0, at);
    rest_.remove_prefix(at == rest_.npos ? rest_.size() : at + (with_mark ? mark.size() : 0));
    return taken;
  }

  void markup() {
    if (rest_.starts_with("<!--")) {
      rest_.remove_prefix(4);
      take_until("-->");
    } else if (rest_.starts_with("<![CDATA[")) {
      rest_.remove_prefix(9);
      const std::string_view plain = take_until("]]>");
      if (depth_ == 0) no_answer_xml("text without an element");
      texts_.back() += plain;
    } else if (rest_.starts_with("<?")) {
      take_until("?>");
    } else if (rest_.starts_with("<!")) {
      no_answer_xml("it has a document type");
    } else if (rest_.starts_with("</")) {
      rest_.remove_prefix(2);
      close(take_until(">"));
    } else {
      rest_.remove_prefix(1);
      open(element());
    }
  }

  /// Takes a tag to its end. A '>' may stand in an attribute's value.
  std::string_view element() {
    char quote = 0;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      const char c = rest_[i];
      if (quote) {
        if (c == quote) quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '>') {
        const std::string_view tag = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        return tag;
      }
    }
    no_answer_xml("it ends too early");
  }

  void open(std::string_view tag) {
    const bool empty = tag.ends_with('/');
    if (empty) tag.remove_suffix(1);
    std::string_view name = tag.substr(0, tag.find_first_of(" \t\r\n"));
    if (name.empty() || name.size() > kLongestName) no_answer_xml("an element without a name");
    if (depth_ == 0 && rooted_) no_answer_xml("it has two roots");
    if (depth_ == kDeepest) no_answer_xml("it has too many levels");
    names_.emplace_back(name);
    texts_.emplace_back();
    ++depth_;
    rooted_ = true;
    if (empty) close(name);
  }

  void close(std::string_view name) {
    while (!name.empty() && (name.back() == ' ' || name.back() == '\n' || name.back() == '\r'))
      name.remove_suffix(1);
    if (depth_ == 0 || names_.back() != name) no_answer_xml("an element ends that did not begin");
    std::string path;
    for (std::size_t i = 1; i < names_.size(); ++i)
      path += (i > 1 ? "/" : "") + names_[i];
    end_(path, texts_.back());
    names_.pop_back();
    texts_.pop_back();
    --depth_;
  }

  void characters(std::string_view text) {
    if (depth_ == 0) {
      if (text.find_first_not_of(" \t\r\n") != text.npos) no_answer_xml("text without an element");
      return;
    }
    std::string& out = texts_.back();
    while (!text.empty()) {
      const std::size_t at = text.find('&');
      out += text.substr(0, at);
      if (at == text.npos) return;
      text.remove_prefix(at + 1);
      const std::size_t end = text.find(';');
      if (end == text.npos || end > 10) no_answer_xml("an unknown entity");
      entity(text.substr(0, end), out);
      text.remove_prefix(end + 1);
    }
  }

  static void entity(std::string_view name, std::string& out) {
    static constexpr std::pair<std::string_view, char> kNamed[] = {
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (const auto& [known, character] : kNamed)
      if (name == known) {
        out += character;
        return;
      }
    std::uint32_t code = 0;
    const int base = name.starts_with("#x") ? 16 : 10;
    const std::string_view digits =
        name.substr(std::min<std::size_t>(base == 16 ? 2 : 1, name.size()));
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    if (!name.starts_with('#') || !whole || code == 0 || code > 0x10ffff ||
        (code >= 0xd800 && code < 0xe000))
      no_answer_xml("an unknown entity");
    append_character(out, code);
  }

  std::string_view rest_;
  const End& end_;
  std::vector<std::string> names_, texts_;
  std::size_t depth_ = 0;
  bool rooted_ = false;
};

std::uint64_t answer_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) no_answer_xml("a wrong number");
  return value;
}

/// The keys of a list that was asked for with encoding-type=url.
std::string percent_decoded(const std::string& text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 &&
        digit(text[i + 2]) >= 0) {
      plain += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      plain += text[i] == '+' ? ' ' : text[i];
    }
  }
  return plain;
}

std::string short_error_text(const std::string& text) {
  return harmless(text.substr(0, kLongestErrorText));
}

}  // namespace

void read_answer_xml(std::string_view text, const AnswerXml::End& end) {
  AnswerXml(text, end).read();
}

AnswerError read_answer_error(std::string_view text) {
  AnswerError error;
  try {
    read_answer_xml(text, [&](const std::string& path, const std::string& value) {
      // Some servers wrap it: <ErrorResponse><Error>.
      if (path == "Code" || path == "Error/Code") error.code = short_error_text(value);
      if (path == "Message" || path == "Error/Message") error.message = short_error_text(value);
      if (path == "Region") error.region = short_error_text(value);
    });
  } catch (const Error&) {  // such as a page of a proxy
    return {};
  }
  return error;
}

ListPage read_list_page(std::string_view text) {
  ListPage page;
  ListPage::Entry entry;
  bool encoded = false;
  read_answer_xml(text, [&](const std::string& path, const std::string& value) {
    if (path == "Contents/Key" || path == "CommonPrefixes/Prefix") entry.key = value;
    if (path == "Contents/Size") entry.bytes = answer_number(value);
    if (path == "Contents/ETag") entry.version = version_of_etag(value);
    if (path == "Contents/LastModified") entry.modified = parse_answer_time(value);
    if (path == "Contents" || path == "CommonPrefixes") {
      page.entries.push_back(std::move(entry));
      entry = {};
    }
    if (path == "EncodingType") encoded = value == "url";
    if (path == "IsTruncated") page.more = value == "true";
    if (path == "NextContinuationToken") page.next = value;
  });
  if (page.more && page.next.empty()) no_answer_xml("a list goes on, without a token");
  if (encoded)
    for (ListPage::Entry& each : page.entries)
      each.key = percent_decoded(each.key);
  std::sort(page.entries.begin(), page.entries.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  return page;
}

UploadsPage read_uploads_page(std::string_view text) {
  UploadsPage page;
  UploadsPage::Entry entry;
  bool encoded = false;
  read_answer_xml(text, [&](const std::string& path, const std::string& value) {
    if (path == "Upload/Key") entry.key = value;
    if (path == "Upload/UploadId") entry.id = value;
    if (path == "Upload/Initiated") entry.began = parse_answer_time(value);
    if (path == "Upload") {
      page.entries.push_back(std::move(entry));
      entry = {};
    }
    if (path == "EncodingType") encoded = value == "url";
    if (path == "IsTruncated") page.more = value == "true";
    if (path == "NextKeyMarker") page.next_key = value;
    if (path == "NextUploadIdMarker") page.next_id = value;
  });
  if (page.more && page.next_key.empty()) no_answer_xml("a list goes on, without a key");
  if (encoded) {
    page.next_key = percent_decoded(page.next_key);
    for (UploadsPage::Entry& each : page.entries)
      each.key = percent_decoded(each.key);
  }
  return page;
}

std::string answer_element(std::string_view text, std::string_view path) {
  std::optional<std::string> found;
  read_answer_xml(text, [&](const std::string& at, const std::string& value) {
    if (at == path && !found) found = value;
  });
  return found.value_or("");
}

std::string version_of_etag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  const bool quoted = etag.size() >= 2 && etag.front() == '"' && etag.back() == '"';
  return std::string(quoted ? etag.substr(1, etag.size() - 2) : etag);
}

double parse_answer_time(const std::string& text) {
  for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%a, %d %b %Y %H:%M:%S GMT"}) {
    std::tm parts{};
    if (::strptime(text.c_str(), form, &parts)) return static_cast<double>(::timegm(&parts));
  }
  return 0;
}

}  // namespace vfm::io
