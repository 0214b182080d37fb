// SPDX-License-Identifier: Apache-2.0
#include "text/clean_prompt.h"

#include <algorithm>
#include <cstdint>

#include "text/characters.h"
#include "text/unicode.h"

namespace vfm::text {
namespace {

constexpr char32_t kReplacement = 0xfffd;
constexpr std::size_t kLongestName = 32;

struct NamedCharacter {
  std::string_view name;
  char32_t character;
};

/// Of the characters from U+00A0 on. These may stand without a semicolon.
constexpr std::string_view kLatinNames =
    "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg "
    "plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest "
    "Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute "
    "Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc "
    "Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute "
    "ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide "
    "oslash ugrave uacute ucirc uuml yacute thorn yuml";

/// The others. They need a semicolon.
constexpr NamedCharacter kNames[] = {
    {"Alpha", 0x391},    {"Beta", 0x392},     {"Chi", 0x3a7},     {"Dagger", 0x2021},
    {"Delta", 0x394},    {"Epsilon", 0x395},  {"Eta", 0x397},     {"Gamma", 0x393},
    {"Iota", 0x399},     {"Kappa", 0x39a},    {"Lambda", 0x39b},  {"Mu", 0x39c},
    {"Nu", 0x39d},       {"OElig", 0x152},    {"Omega", 0x3a9},   {"Omicron", 0x39f},
    {"Phi", 0x3a6},      {"Pi", 0x3a0},       {"Prime", 0x2033},  {"Psi", 0x3a8},
    {"Rho", 0x3a1},      {"Scaron", 0x160},   {"Sigma", 0x3a3},   {"Tau", 0x3a4},
    {"Theta", 0x398},    {"Upsilon", 0x3a5},  {"Xi", 0x39e},      {"Yuml", 0x178},
    {"Zeta", 0x396},     {"alefsym", 0x2135}, {"alpha", 0x3b1},   {"and", 0x2227},
    {"ang", 0x2220},     {"apos", 0x27},      {"asymp", 0x2248},  {"bdquo", 0x201e},
    {"beta", 0x3b2},     {"bull", 0x2022},    {"cap", 0x2229},    {"chi", 0x3c7},
    {"circ", 0x2c6},     {"clubs", 0x2663},   {"cong", 0x2245},   {"crarr", 0x21b5},
    {"cup", 0x222a},     {"dArr", 0x21d3},    {"dagger", 0x2020}, {"darr", 0x2193},
    {"delta", 0x3b4},    {"diams", 0x2666},   {"empty", 0x2205},  {"emsp", 0x2003},
    {"ensp", 0x2002},    {"epsilon", 0x3b5},  {"equiv", 0x2261},  {"eta", 0x3b7},
    {"euro", 0x20ac},    {"exist", 0x2203},   {"fnof", 0x192},    {"forall", 0x2200},
    {"frasl", 0x2044},   {"gamma", 0x3b3},    {"ge", 0x2265},     {"hArr", 0x21d4},
    {"harr", 0x2194},    {"hearts", 0x2665},  {"hellip", 0x2026}, {"image", 0x2111},
    {"infin", 0x221e},   {"int", 0x222b},     {"iota", 0x3b9},    {"isin", 0x2208},
    {"kappa", 0x3ba},    {"lArr", 0x21d0},    {"lambda", 0x3bb},  {"lang", 0x2329},
    {"larr", 0x2190},    {"lceil", 0x2308},   {"ldquo", 0x201c},  {"le", 0x2264},
    {"lfloor", 0x230a},  {"lowast", 0x2217},  {"loz", 0x25ca},    {"lrm", 0x200e},
    {"lsaquo", 0x2039},  {"lsquo", 0x2018},   {"mdash", 0x2014},  {"minus", 0x2212},
    {"mu", 0x3bc},       {"nabla", 0x2207},   {"ndash", 0x2013},  {"ne", 0x2260},
    {"ni", 0x220b},      {"notin", 0x2209},   {"nsub", 0x2284},   {"nu", 0x3bd},
    {"oelig", 0x153},    {"oline", 0x203e},   {"omega", 0x3c9},   {"omicron", 0x3bf},
    {"oplus", 0x2295},   {"or", 0x2228},      {"otimes", 0x2297}, {"part", 0x2202},
    {"permil", 0x2030},  {"perp", 0x22a5},    {"phi", 0x3c6},     {"pi", 0x3c0},
    {"piv", 0x3d6},      {"prime", 0x2032},   {"prod", 0x220f},   {"prop", 0x221d},
    {"psi", 0x3c8},      {"rArr", 0x21d2},    {"radic", 0x221a},  {"rang", 0x232a},
    {"rarr", 0x2192},    {"rceil", 0x2309},   {"rdquo", 0x201d},  {"real", 0x211c},
    {"rfloor", 0x230b},  {"rho", 0x3c1},      {"rlm", 0x200f},    {"rsaquo", 0x203a},
    {"rsquo", 0x2019},   {"sbquo", 0x201a},   {"scaron", 0x161},  {"sdot", 0x22c5},
    {"sigma", 0x3c3},    {"sigmaf", 0x3c2},   {"sim", 0x223c},    {"spades", 0x2660},
    {"sub", 0x2282},     {"sube", 0x2286},    {"sum", 0x2211},    {"sup", 0x2283},
    {"supe", 0x2287},    {"tau", 0x3c4},      {"there4", 0x2234}, {"theta", 0x3b8},
    {"thetasym", 0x3d1}, {"thinsp", 0x2009},  {"tilde", 0x2dc},   {"trade", 0x2122},
    {"uArr", 0x21d1},    {"uarr", 0x2191},    {"upsih", 0x3d2},   {"upsilon", 0x3c5},
    {"weierp", 0x2118},  {"xi", 0x3be},       {"zeta", 0x3b6},    {"zwj", 0x200d},
    {"zwnj", 0x200c},
};

constexpr NamedCharacter kPlainNames[] = {
    {"amp", '&'}, {"AMP", '&'},  {"lt", '<'},   {"LT", '<'},    {"gt", '>'},
    {"GT", '>'},  {"quot", '"'}, {"QUOT", '"'}, {"COPY", 0xa9}, {"REG", 0xae}};

/// What Windows-1252 has from 0x80 on; 0: nothing.
constexpr char16_t kWindows[] = {0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
                                 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017d, 0,
                                 0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

/// Returns the character of a name that needs no semicolon; 0 if there is none.
char32_t plain_character(std::string_view name) {
  for (const NamedCharacter& one : kPlainNames)
    if (one.name == name) return one.character;
  char32_t character = 0xa0;
  for (std::string_view rest = kLatinNames; !rest.empty(); ++character) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == name) return character;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return 0;
}

char32_t named_character(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name, &NamedCharacter::name);
  return found != std::end(kNames) ? found->character : plain_character(name);
}

/// Appends the character of a number; nothing for those that no text has.
void append_number(std::string& out, std::uint32_t number) {
  const bool control = number < 0x20 && number != '\t' && number != '\n' && number != '\f';
  if (number >= 0x80 && number < 0xa0) {
    const char32_t windows = kWindows[number - 0x80];
    append_code_point(out, windows != 0 ? windows : number);
  } else if (number == 0 || number > 0x10ffff || (number >= 0xd800 && number < 0xe000)) {
    append_code_point(out, kReplacement);
  } else if (number == '\r') {
    out += '\r';
  } else if (!control && number != 0x7f && (number & 0xfffe) != 0xfffe &&
             !(number >= 0xfdd0 && number < 0xfdf0)) {
    append_code_point(out, number);
  }
}

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Reads "#8211;" or "#x2013;" at the beginning of `rest`, appends its character and returns its
/// length; 0 if there is none.
std::size_t take_number(std::string_view rest, std::string& out) {
  const bool hex = rest.size() > 1 && (rest[1] == 'x' || rest[1] == 'X');
  const std::uint32_t base = hex ? 16 : 10;
  std::size_t at = hex ? 2 : 1;
  const std::size_t first = at;
  std::uint32_t number = 0;
  for (; at < rest.size(); ++at) {
    const char c = rest[at];
    const int digit = c >= '0' && c <= '9'          ? c - '0'
                      : hex && c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : hex && c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                    : -1;
    if (digit < 0) break;
    number = std::min<std::uint32_t>(number * base + static_cast<std::uint32_t>(digit), 1 << 24);
  }
  if (at == first) return 0;
  append_number(out, number);
  return at < rest.size() && rest[at] == ';' ? at + 1 : at;
}

/// The same for "mdash;". Without a semicolon the longest name counts that needs none.
std::size_t take_name(std::string_view rest, std::string& out) {
  const std::size_t end = std::min({rest.find_first_of("\t\n\f <&#;"), rest.size(), kLongestName});
  if (end < rest.size() && rest[end] == ';')
    if (const char32_t c = named_character(rest.substr(0, end))) {
      append_code_point(out, c);
      return end + 1;
    }
  for (std::size_t length = end; length > 1; --length)
    if (const char32_t c = plain_character(rest.substr(0, length))) {
      append_code_point(out, c);
      return length;
    }
  return 0;
}

/// ftfy's pattern of a reference: it ends with a semicolon. Returns its length; 0 if there is none.
std::size_t closed_reference(std::string_view rest) {
  constexpr std::size_t kMostLetters = 24;
  const std::size_t first = rest.starts_with('#') ? 1 : 0;
  std::size_t at = first;
  while (at < rest.size() && is_alphanumeric(rest[at]))
    ++at;
  if (at == first || at - first > kMostLetters || at == rest.size() || rest[at] != ';') return 0;
  return at + 1;
}

/// `closed`: only references that end with a semicolon, as in ftfy.
std::string without_references(std::string_view text, bool closed) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = std::min(text.find('&', at), text.size());
    out += text.substr(at, mark - at);
    at = mark;
    if (at == text.size()) break;
    const std::string_view rest = text.substr(++at);
    std::string made;
    std::size_t taken = rest.starts_with('#') ? take_number(rest, made) : take_name(rest, made);
    if (closed && (taken != closed_reference(rest) || made == ";")) taken = 0;
    out += taken == 0 ? "&" : made;
    at += taken;
  }
  return out;
}

/// Ligatures and letters of other widths have a compatible form that is plain letters.
bool is_dressed(char32_t c) {
  return (c >= 0xff01 && c <= 0xffef) || (c >= 0xfb00 && c <= 0xfb06) || c == 0x132 || c == 0x133 ||
         (c >= 0x1c4 && c <= 0x1cc) || (c >= 0x1f1 && c <= 0x1f3);
}

/// The control characters that ftfy removes. Others are white space, or shape the text.
bool is_removed(char32_t c) {
  const bool space = c == '\t' || c == '\n' || c == '\f' || c == '\r';
  return (c < 0x20 && !space) || c == 0x7f || (c >= 0x206a && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xfff9 && c <= 0xfffc);
}

/// Returns the length of a terminal's "ESC[1;31m" at the beginning of `rest`; 0 if there is none.
std::size_t terminal_escape(std::string_view rest) {
  if (!rest.starts_with("\x1b[")) return 0;
  const std::size_t at = rest.find_first_not_of("0123456789;", 2);
  const bool letter = at < rest.size() && is_alphanumeric(rest[at]) && rest[at] > '9';
  return letter ? at + 1 : 0;
}

void append_plain(std::string& out, char32_t c, std::string_view bytes) {
  if (c >= 0x80 && c < 0xa0)
    append_number(out, c);
  else if ((c >= 0x2018 && c <= 0x201b) || c == 0x2bc)
    out += '\'';
  else if (c >= 0x201c && c <= 0x201f)
    out += '"';
  else if (c == 0x149)
    out += "'n";
  else if (c == 0xfb05)
    out += "\u017ft";
  else if (is_dressed(c))
    out += normal_form(bytes, NormalForm::nfkc);
  else
    out += bytes;
}

/// Calls append(character, its bytes) for each, and returns `text` as that writes it.
template <class Append>
std::string rewritten(std::string_view text, const Append& append) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    append(out, c, text.substr(begin, at - begin));
  }
  return out;
}

std::string without_terminal_escapes(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t escape = terminal_escape(text);
    if (escape == 0) out += text.front();
    text.remove_prefix(std::max<std::size_t>(escape, 1));
  }
  return out;
}

std::string plain_characters(std::string_view text) {
  const std::string plain = without_terminal_escapes(rewritten(text, append_plain));
  const auto keep = [](std::string& out, char32_t c, std::string_view bytes) {
    if (!is_removed(c)) out += bytes;
  };
  return normal_form(rewritten(plain, keep), NormalForm::nfc);
}

/// A line as ftfy mends it, again and again until nothing changes.
std::string mended_line(std::string line, bool references) {
  for (std::string before; line != before;) {
    before = line;
    if (references) line = without_references(line, true);
    line = plain_characters(line);
  }
  return line;
}

/// From a line with "<" on, ftfy takes the text for HTML, whose references it leaves alone.
std::string mended(std::string_view text) {
  std::string out;
  bool references = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    references = references && line.find('<') == std::string_view::npos;
    out += mended_line(std::string(line), references);
    text.remove_prefix(end);
  }
  return out;
}

std::string single_spaces(std::string_view text) {
  std::string out;
  bool gap = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (is_space(c) || (c >= 0x1c && c <= 0x1f)) {
      gap = true;
      continue;
    }
    if (gap && !out.empty()) out += ' ';
    gap = false;
    out += text.substr(begin, at - begin);
  }
  return out;
}

}  // namespace

std::string clean_prompt(std::string_view utf8) {
  std::string text = mended(valid_utf8(utf8));
  for (int i = 0; i < 2; ++i)
    text = without_references(text, false);
  return single_spaces(text);
}

}  // namespace vfm::text
