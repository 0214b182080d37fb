// SPDX-License-Identifier: Apache-2.0
#include "text/unicode.h"

#include <catch2/catch.hpp>

using vfm::text::clean_line;
using vfm::text::first_characters;
using vfm::text::to_utf8;
using vfm::text::words;
using Words = std::vector<std::string>;

TEST_CASE("file text in any Unicode encoding becomes UTF-8") {
  using namespace std::string_literals;
  CHECK(to_utf8("plain") == "plain");
  CHECK(to_utf8("") == "");
  CHECK(to_utf8("\xef\xbb\xbfna\xc3\xafve") == "naïve");
  CHECK(to_utf8("\xff\xfeh\0i\0\xe9\0"s) == "hié");
  CHECK(to_utf8("\xfe\xff\0h\0i"s) == "hi");
  CHECK(to_utf8("h\0e\0l\0l\0o\0 \0"s) == "hello ");
  CHECK(to_utf8("\0h\0e\0l\0l\0o"s) == "hello");
  CHECK(to_utf8("\xff\xfe\0\0h\0\0\0"s) == "h");
  CHECK(to_utf8("\xff\xfe\x3d\xd8\x00\xde"s) == "😀");  // a surrogate pair
  CHECK(to_utf8("bad \xff\xc3(") == "bad \xef\xbf\xbd\xef\xbf\xbd(");
  CHECK(to_utf8("\xff\xfe"s) == "");
  CHECK_NOTHROW(to_utf8("\xff\xfeh"s));         // half a unit
  CHECK_NOTHROW(to_utf8("\xff\xfe\x3d\xd8"s));  // half a pair
}

TEST_CASE("a caption is one clean line") {
  CHECK(clean_line("  a\tred\r\n\n fox \n") == "a red fox");
  CHECK(clean_line("") == "");
  CHECK(clean_line(" \n\t\xc2\xa0\xe3\x80\x80") == "");
  CHECK(clean_line(std::string_view("a\0b\x07", 4)) == "a b");
  CHECK(clean_line("cafe\xcc\x81") == "café");                        // composed
  CHECK(clean_line("\xc0\xafx") == "\xef\xbf\xbd\xef\xbf\xbdx");      // overlong slash
  CHECK(clean_line("می\xe2\x80\x8cخواهم") == "می\xe2\x80\x8cخواهم");  // ZWNJ belongs to the word
  CHECK(clean_line("👩\xe2\x80\x8d🚀") == "👩\xe2\x80\x8d🚀");
}

TEST_CASE("captions are cut between characters, preferably between words") {
  CHECK(first_characters("a red fox", 100) == "a red fox");
  CHECK(first_characters("a red fox", 9) == "a red fox");
  CHECK(first_characters("a red fox", 8) == "a red");
  CHECK(first_characters("a red fox", 6) == "a red");
  CHECK(first_characters("a red fox", 0) == "");
  CHECK(first_characters("incomprehensibilities", 5) == "incom");
  CHECK(first_characters("e\xcc\x81\xcc\x82xx", 1) == "e\xcc\x81\xcc\x82");
  CHECK(first_characters("👩\xe2\x80\x8d👩\xe2\x80\x8d👧👍🏽", 1) ==
        "👩\xe2\x80\x8d👩\xe2\x80\x8d👧");
  CHECK(first_characters("🇫🇷🇩🇪", 1) == "🇫🇷");
  CHECK(first_characters("", 3) == "");
}

TEST_CASE("texts as encoders want them") {
  using vfm::text::lower_case;
  using vfm::text::trimmed;
  using vfm::text::without_punctuation;
  // Python's str.lower() and str.strip().
  CHECK(lower_case("A RED Fox, ΣΊΣΥΦΟΣ İ Ǆ") == "a red fox, σίσυφος i\xcc\x87 ǆ");
  CHECK(trimmed(" \t\x1f\xc2\xa0 a  b\xe3\x80\x80\n") == "a  b");
  CHECK(trimmed("👍🏽 ") == "👍🏽");
  CHECK(trimmed(" \n").empty());
  CHECK(trimmed("").empty());
  // Its punctuation is ASCII's; other scripts keep theirs.
  CHECK(without_punctuation(" It's late... (at night)! ") == "Its late at night");
  CHECK(without_punctuation("a_b-c\t\n d . e “f” 1,234.5 naïve 👍") == "abc d e “f” 12345 naïve 👍");
  CHECK(without_punctuation("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~").empty());
}

TEST_CASE("words of every script") {
  CHECK(words("A red circle, moving LEFT.", 99) == Words{"a", "red", "circle", "moving", "left"});
  CHECK(words("", 99).empty());
  CHECK(words("  ... -- !? «» \n", 99).empty());
  CHECK(words("don't 3.14 x2", 99) == Words{"don't", "3.14", "x2"});
  CHECK(words("Straße İstanbul ΣΊΣΥΦΟΣ", 99) == Words{"strasse", "i̇stanbul", "σίσυφοσ"});
  CHECK(words("ＦＵＬＬ ｗｉｄｔｈ ﬁsh ①", 99) == Words{"full", "width", "fish", "1"});
  CHECK(words("Красная лиса", 99) == Words{"красная", "лиса"});
  CHECK(words("ثعلب أحمر", 99) == Words{"ثعلب", "أحمر"});
  CHECK(words("\xd7\xa9\xd7\x95\xd7\xa2\xd7\x9c \xe2\x80\x8f\xd7\x90\xd7\x93\xd7\x95\xd7\x9d",
              99) == Words{"שועל", "אדום"});
  CHECK(words("लाल लोमड़ी", 99).size() == 2);
  CHECK(words("สุนัขจิ้งจอกสีแดง", 99).size() >= 2);  // no spaces: the dictionary finds words
  CHECK(words("赤い狐が雪道を渡る", 99).size() >= 4);
  CHECK(words("红色的狐狸穿过马路", 99).size() >= 3);
  CHECK(words("빨간 여우", 99) == Words{"빨간", "여우"});
  CHECK(words("a🦊b 🚀🚀", 99) == Words{"a", "🦊", "b", "🚀", "🚀"});
  CHECK(words("👩\xe2\x80\x8d🚀 waves", 99) == Words{"👩🚀", "waves"});
  CHECK(words("a b c d e", 3) == Words{"a", "b", "c"});
  CHECK(words("cafe\xcc\x81", 9) == words("CAFÉ", 9));
  CHECK(words("\xff\xfe red", 9).back() == "red");
}

TEST_CASE("long texts are no trouble") {
  std::string long_text;
  while (long_text.size() < 100'000)
    long_text += "狐狸穿过马路 red สุนัข ";
  CHECK(words(long_text, 512).size() == 512);
  CHECK(words(std::string(100'000, 'a'), 512).size() == 1);
  CHECK(words(std::string(100'000, '\xff'), 512).size() <= 512);
  CHECK(first_characters(std::string(100'000, 'a'), 10) == "aaaaaaaaaa");
  std::string marks = "e";
  for (int i = 0; i < 30'000; ++i)
    marks += "\xcc\x81";
  CHECK_NOTHROW(clean_line(marks));
  CHECK(words(marks, 9).size() == 1);
}
