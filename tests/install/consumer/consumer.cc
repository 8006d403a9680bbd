// Uses the installed headers and library, and nothing else of Topknot's.
#include <topknot/error.h>
#include <topknot/version.h>

#include <cstdio>

int main() {
  const topknot::Error error{.code = topknot::Code::kNotFound,
                             .what = "no model",
                             .where = "here",
                             .why = "none was given",
                             .fix = "give one"};
  const topknot::Result<int> result = error;
  if (result || result.error().to_string().find("give one") == std::string::npos) return 1;
  std::printf("%s %s\n", topknot::build_info().version, topknot::code_name(error.code));
  return 0;
}
