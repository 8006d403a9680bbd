#include "bench/baseline.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "base/try.h"

namespace topknot::bench {
namespace {

using Json = nlohmann::json;

Error failed(const std::string& command, Code code, std::string why) {
  return Error{.code = code,
               .what = "the baseline gave no result",
               .where = command,
               .why = std::move(why),
               .fix = "run the command by hand, or leave --baseline out"};
}

// A file that goes away with its owner.
class TemporaryFile {
 public:
  static Result<TemporaryFile> create(const std::string& text) {
    const char* folder = std::getenv("TMPDIR");
    TemporaryFile file;
    file.path_ = cat(folder != nullptr ? folder : "/tmp", "/topknot-bench-XXXXXX");
    const int fd = ::mkstemp(file.path_.data());
    if (fd < 0) {
      Error error{.code = Code::kIo,
                  .what = "cannot write a temporary file",
                  .where = file.path_,
                  .why = std::strerror(errno),
                  .fix = "set TMPDIR to a folder that can be written"};
      file.path_.clear();
      return error;
    }
    const auto written = ::write(fd, text.data(), text.size());
    ::close(fd);
    if (written != static_cast<ssize_t>(text.size())) {
      return Error{.code = Code::kIo,
                   .what = "cannot write a temporary file",
                   .where = file.path_,
                   .why = "the disk took only part of it",
                   .fix = "free some space or set TMPDIR"};
    }
    return file;
  }
  TemporaryFile(TemporaryFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  TemporaryFile() = default;
  std::string path_;
};

Result<std::string> output_of(const std::string& command, const std::string& argument) {
  std::FILE* pipe = ::popen(cat(command, " ", argument).c_str(), "re");
  if (pipe == nullptr) return failed(command, Code::kIo, std::strerror(errno));
  std::string text;
  char part[4096];
  while (const size_t n = std::fread(part, 1, sizeof part, pipe)) {
    if (text.size() + n <= kMaxBaselineBytes) text.append(part, n);
  }
  const int status = ::pclose(pipe);
  if (status != 0) {
    return failed(command, Code::kIo,
                  WIFEXITED(status) ? cat("it ended with status ", WEXITSTATUS(status))
                                    : std::string("a signal ended it"));
  }
  return text;
}

Json case_of(std::string_view operation, const Row& row) {
  Json json = {{"operation", operation}, {"format", row.format}};
  json["selection"] = "dense";
  for (const auto& [name, value] : row.shape) {
    json[name] = value;
    if (name == "topk") json["selection"] = "sparse";
  }
  return json;
}

}  // namespace

Status add_baseline(const std::string& command, std::string_view operation, std::span<Row> rows) {
  Json cases = Json::array();
  for (const Row& row : rows) cases.push_back(case_of(operation, row));
  TOPKNOT_TRY(const TemporaryFile file, TemporaryFile::create(cases.dump()));
  TOPKNOT_TRY(const std::string text, output_of(command, file.path()));
  const Json answer = Json::parse(text, nullptr, false);
  if (!answer.is_array() || answer.size() != rows.size()) {
    return failed(
        command, Code::kCorrupt,
        cat("it printed no JSON array of ", rows.size(), " numbers: ", printable(text, 200)));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (answer[i].is_number() && answer[i].get<double>() > 0) {
      rows[i].baseline_us = answer[i].get<double>();
    } else if (!answer[i].is_null()) {
      return failed(command, Code::kCorrupt, cat("entry ", i, " is ", answer[i].dump()));
    }
  }
  return {};
}

}  // namespace topknot::bench
