// Operations on Text that methods and filters share.
#include <cstring>

#include "chat/operators.h"
#include "chat/unicode.h"

namespace topknot::chat {

size_t find_bytes(std::string_view text, std::string_view needle, size_t begin) {
  if (begin > text.size()) return std::string_view::npos;
  if (needle.empty()) return begin;
  // memmem is linear; std::string::find is not, and both texts can be hostile.
  const void* found =
      memmem(text.data() + begin, text.size() - begin, needle.data(), needle.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

Text escape_html(const Text& text) {
  static constexpr std::pair<char, std::string_view> kEscapes[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
  Text out;
  size_t copied = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    for (const auto& [character, escape] : kEscapes) {
      if (text.bytes()[i] != character) continue;
      out.append(text, copied, i);
      out.append(escape, text.trusted_at(i));
      copied = i + 1;
    }
  }
  out.append(text, copied, text.size());
  return out;
}

Text strip_text(const Text& text, const Text* characters, bool left, bool right) {
  const std::string& bytes = text.bytes();
  std::vector<uint32_t> set;
  if (characters != nullptr) {
    for (size_t i = 0; i < characters->size();)
      set.push_back(next_code_point(characters->bytes(), &i));
    std::sort(set.begin(), set.end());
  }
  const auto removed = [&](uint32_t c) {
    return characters == nullptr ? is_space(c) : std::binary_search(set.begin(), set.end(), c);
  };
  size_t begin = 0;
  size_t end = bytes.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!removed(next_code_point(bytes, &next))) break;
    begin = next;
  }
  while (right && end > begin) {
    const size_t before = previous_code_point_offset(bytes, end);
    size_t next = before;
    if (!removed(next_code_point(bytes, &next))) break;
    end = before;
  }
  return text.slice(begin, end);
}

Text replace_text(Runtime& runtime, const Text& text, const Text& old, const Text& with,
                  int64_t count) {
  Text out;
  runtime.ledger.step(1 + text.size() / kTextBytesPerStep);
  const auto put = [&] {
    runtime.ledger.step(1 + with.size() / kTextBytesPerStep);
    out.append(with);
    if (out.size() > kMaxStringBytes)
      fail_limit("a string would be longer than ", human_bytes(kMaxStringBytes));
  };
  size_t copied = 0;
  if (old.empty()) {  // before every character and at the end
    size_t at = 0;
    while (count != 0) {
      put();
      --count;
      if (at >= text.size()) break;
      next_code_point(text.bytes(), &at);
      out.append(text, copied, at);
      copied = at;
    }
  } else {
    for (size_t at = find_bytes(text.bytes(), old.bytes(), 0);
         count != 0 && at != std::string::npos; --count) {
      out.append(text, copied, at);
      put();
      copied = at + old.size();
      at = find_bytes(text.bytes(), old.bytes(), copied);
    }
  }
  out.append(text, copied, text.size());
  return out;
}

namespace {

void append_mapping(Text* out, const CaseMapping& mapping, bool trusted) {
  for (const uint32_t c : mapping) {
    if (c != 0) append_code_point(out, c, trusted);
  }
}

bool is_cased(uint32_t c) { return is_lowercase(c) || is_uppercase(c) || to_lower(c)[0] != c; }

// A capital sigma at the end of a word becomes a final one.
uint32_t lower_sigma(const std::string& bytes, size_t begin, size_t end) {
  const bool after_letter = begin > 0 && [&] {
    size_t at = previous_code_point_offset(bytes, begin);
    return is_cased(next_code_point(bytes, &at));
  }();
  const bool before_letter = end < bytes.size() && [&] {
    size_t at = end;
    return is_cased(next_code_point(bytes, &at));
  }();
  return after_letter && !before_letter ? 0x3C2 : 0x3C3;
}

void append_case(Text* out, const Text& text, size_t begin, size_t end, bool upper) {
  for (size_t i = begin; i < end;) {
    const size_t at = i;
    const uint32_t c = next_code_point(text.bytes(), &i);
    if (c < 0x80) {
      const char mapped = static_cast<char>(upper ? to_upper(c)[0] : to_lower(c)[0]);
      out->append(std::string_view(&mapped, 1), text.trusted_at(at));
    } else if (!upper && c == 0x3A3) {
      append_code_point(out, lower_sigma(text.bytes(), at, i), text.trusted_at(at));
    } else {
      append_mapping(out, upper ? to_upper(c) : to_lower(c), text.trusted_at(at));
    }
  }
}

}  // namespace

Text map_characters(Runtime& runtime, const Text& text, bool upper) {
  runtime.ledger.step(1 + text.size() / 16);
  Text out;
  append_case(&out, text, 0, text.size(), upper);
  return out;
}

Text capitalize_text(Runtime& runtime, const Text& text) {
  runtime.ledger.step(1 + text.size() / 16);
  Text out;
  if (text.empty()) return out;
  size_t rest = 0;
  append_mapping(&out, to_title(next_code_point(text.bytes(), &rest)), text.trusted_at(0));
  append_case(&out, text, rest, text.size(), false);
  return out;
}

std::vector<Text> split_lines(Runtime& runtime, const Text& text, bool keep_ends) {
  runtime.ledger.step(1 + text.size() / 16);
  std::vector<Text> lines;
  const std::string& bytes = text.bytes();
  size_t begin = 0;
  for (size_t i = 0; i < bytes.size();) {
    const size_t at = i;
    const uint32_t c = next_code_point(bytes, &i);
    if (!is_line_break(c)) continue;
    if (c == '\r' && i < bytes.size() && bytes[i] == '\n') ++i;
    if (lines.size() >= kMaxItems) fail_limit("a list would have more than ", kMaxItems, " items");
    lines.push_back(text.slice(begin, keep_ends ? i : at));
    begin = i;
  }
  if (begin < bytes.size()) lines.push_back(text.slice(begin, bytes.size()));
  return lines;
}

bool is_case(const Text& text, bool upper) {
  bool cased = false;
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = next_code_point(text.bytes(), &i);
    if (upper ? is_lowercase(c) : is_uppercase(c)) return false;
    cased = cased || (upper ? is_uppercase(c) : is_lowercase(c));
  }
  return cased;
}

}  // namespace topknot::chat
