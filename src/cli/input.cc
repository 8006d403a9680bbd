#include "cli/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/mapped_file.h"
#include "base/strings.h"

namespace topknot::cli {
namespace {

Error cannot_read(const std::string& name, int error) {
  return Error{.code = error == ENOENT ? Code::kNotFound : Code::kIo,
               .what = "cannot read the text",
               .where = name,
               .why = std::strerror(error),
               .fix = "check the path"};
}

// For what cannot be mapped. `fd` stays open.
Result<std::string> read_stream(int fd, const std::string& name) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot_read(name, errno);
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kMaxTextFileBytes) {
      return Error{.code = Code::kOutOfRange,
                   .what = "the text is too long",
                   .where = name,
                   .why = cat("more than ", kMaxTextFileBytes, " bytes"),
                   .fix = "shorten it"};
    }
  }
}

}  // namespace

Result<std::string> read_text(const std::string& path) {
  if (path == "-") return read_stream(STDIN_FILENO, "standard input");
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
    return read_text_file(path, kMaxTextFileBytes);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return cannot_read(printable(path, 4096), errno);
  auto text = read_stream(fd, printable(path, 4096));
  ::close(fd);
  return text;
}

std::string_view prompt_of_file(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.ends_with("\r\n")) {
    text.remove_suffix(2);
  } else if (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  return text;
}

Status check_text(std::string_view text, std::string_view name, std::string_view where) {
  if (text.empty()) {
    return Error{.code = Code::kInvalidArgument,
                 .what = cat(name, " is empty"),
                 .where = std::string(where),
                 .why = "needed: at least one byte of text; found: none",
                 .fix = "give some text"};
  }
  if (const size_t at = find_invalid_utf8(text); at != std::string::npos) {
    return Error{.code = Code::kInvalidArgument,
                 .what = cat(name, " is not valid UTF-8"),
                 .where = where.empty() ? cat("byte ", at) : cat(where, ", byte ", at),
                 .why = cat("needed: UTF-8; found: ", printable(text.substr(at, 4))),
                 .fix = "convert the text to UTF-8, for instance with iconv"};
  }
  return {};
}

}  // namespace topknot::cli
