// Every answer of jinja2 in tests/data/jinja_cases.json (tools/make_jinja_cases.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/mapped_file.h"
#include "base/strings.h"
#include "chat/template.h"

namespace topknot::chat {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxCasesBytes = uint64_t{64} << 20;

Json load_cases() {
  const char* elsewhere = std::getenv("TOPKNOT_JINJA_CASES");
  const std::string path =
      elsewhere != nullptr ? elsewhere : TOPKNOT_SOURCE_DIR "/tests/data/jinja_cases.json";
  auto text = read_text_file(path, kMaxCasesBytes);
  if (!text) {
    ADD_FAILURE() << text.error().to_string();
    return Json::object();
  }
  return Json::parse(*text);
}

std::tm fixed_clock() {
  std::tm now{};
  now.tm_year = 2025 - 1900;
  now.tm_mon = 2;
  now.tm_mday = 9;
  now.tm_hour = 14;
  now.tm_min = 5;
  now.tm_sec = 7;
  now.tm_yday = 67;
  return now;
}

Result<Rendered> render_case(const std::string& source, const Json& variables) {
  auto parsed = Template::parse(source, "case");
  if (!parsed) return std::move(parsed).error();
  RenderOptions options;
  options.clock = fixed_clock;
  return parsed->render(variables, options);
}

TEST(JinjaCases, RenderAsJinja2Does) {
  const Json document = load_cases();
  ASSERT_TRUE(document.contains("cases"));
  size_t compared = 0;
  size_t wrong = 0;
  for (const Json& entry : document["cases"]) {
    const std::string key = entry[0];
    const std::string source =
        key.starts_with("@") ? document["templates"][key.substr(1)].get<std::string>() : key;
    const auto rendered = render_case(source, document["contexts"][entry[1].get<std::string>()]);
    ++compared;
    const bool expects_error = entry[2].is_null();
    if (rendered.has_value() != expects_error &&
        (expects_error || rendered->text() == entry[2].get<std::string>()))
      continue;
    if (++wrong > 40) continue;
    ADD_FAILURE() << "template: " << Json(key).dump() << " with " << entry[1]
                  << "\n  jinja2: " << entry[2].dump() << "\n  ours:   "
                  << (rendered ? Json(rendered->text()).dump() : rendered.error().to_string());
  }
  EXPECT_EQ(wrong, 0u) << "of " << compared;
  EXPECT_GE(compared, 1500u);
}

}  // namespace
}  // namespace topknot::chat
