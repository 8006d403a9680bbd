#include "support/npz.h"

#include <zip.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "base/checked_math.h"
#include "base/strings.h"
#include "base/try.h"

namespace topknot::test {
namespace {

struct TypeRow {
  NpyType type;
  std::string_view descr;
  const char* name;
  size_t bytes;
};
constexpr std::array kTypes = {
    TypeRow{NpyType::kF32, "<f4", "float32", 4}, TypeRow{NpyType::kF64, "<f8", "float64", 8},
    TypeRow{NpyType::kI16, "<i2", "int16", 2},   TypeRow{NpyType::kI32, "<i4", "int32", 4},
    TypeRow{NpyType::kI64, "<i8", "int64", 8},   TypeRow{NpyType::kU8, "|u1", "uint8", 1},
    TypeRow{NpyType::kBool, "|b1", "bool", 1},
};

const TypeRow& row_of(NpyType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(),
                       [type](const TypeRow& row) { return row.type == type; });
}

Error bad_npy(Code code, std::string_view name, std::string why) {
  return {.code = code,
          .what = cat("cannot read the array '", printable(name), "'"),
          .where = "",
          .why = std::move(why),
          .fix = "write it again with numpy.savez_compressed"};
}

// The header is the text of a Python dict with three known keys; NumPy writes them sorted, with
// single quotes. Anything else is refused rather than interpreted.
struct Header {
  std::string_view descr;
  bool fortran_order = false;
  std::vector<uint64_t> shape;
};

// A cursor over the header's text: every step either consumes what it names or fails.
struct Cursor {
  std::string_view text;

  bool eat(std::string_view expected) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (!text.starts_with(expected)) return false;
    text.remove_prefix(expected.size());
    return true;
  }
  std::optional<std::string_view> quoted() {
    if (!eat("'")) return std::nullopt;
    const size_t end = text.find('\'');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text.substr(0, end);
    text.remove_prefix(end + 1);
    return inside;
  }
  std::optional<uint64_t> number() {
    eat("");
    uint64_t value = 0;
    size_t digits = 0;
    for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
      if (mul_overflows<uint64_t>(value, 10, &value)) return std::nullopt;
      if (add_overflows<uint64_t>(value, uint64_t(text[digits] - '0'), &value)) return std::nullopt;
    }
    if (digits == 0) return std::nullopt;
    text.remove_prefix(digits);
    return value;
  }
};

bool parse_shape(Cursor* cursor, std::vector<uint64_t>* shape) {
  if (!cursor->eat("(")) return false;
  while (!cursor->eat(")")) {
    const auto extent = cursor->number();
    if (!extent || shape->size() == kMaxNpyDims) return false;
    shape->push_back(*extent);
    if (!cursor->eat(",") && !cursor->text.starts_with(')')) return false;
  }
  return true;
}

std::optional<Header> parse_header(std::string_view text) {
  Header header;
  Cursor cursor{text};
  if (!cursor.eat("{") || !cursor.eat("'descr'") || !cursor.eat(":")) return std::nullopt;
  const auto descr = cursor.quoted();
  if (!descr) return std::nullopt;
  header.descr = *descr;
  if (!cursor.eat(",") || !cursor.eat("'fortran_order'") || !cursor.eat(":")) return std::nullopt;
  header.fortran_order = cursor.eat("True");
  if (!header.fortran_order && !cursor.eat("False")) return std::nullopt;
  if (!cursor.eat(",") || !cursor.eat("'shape'") || !cursor.eat(":")) return std::nullopt;
  if (!parse_shape(&cursor, &header.shape)) return std::nullopt;
  cursor.eat(",");
  return cursor.eat("}") ? std::optional(header) : std::nullopt;
}

// Splits a .npy file into the text of its header and the elements.
struct Parts {
  std::string_view header;
  std::span<const std::byte> data;
};
Result<Parts> split_npy(std::span<const std::byte> file, std::string_view name) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) return bad_npy(Code::kCorrupt, name, "it is not a .npy file");
  // magic 6 | major 1 | minor 1 | header bytes: u16 in version 1, u32 above
  if (file.size() < 8) return bad_npy(Code::kCorrupt, name, "it ends within the version");
  const auto major = uint8_t(file[6]);
  if (major < 1 || major > 3) {
    return bad_npy(Code::kUnsupported, name, cat("it has format version ", int(major)));
  }
  const size_t width = major == 1 ? 2 : 4;
  if (file.size() < 8 + width) return bad_npy(Code::kCorrupt, name, "it ends within its header");
  uint64_t bytes = 0;
  for (size_t i = 0; i < width; ++i) bytes |= uint64_t(uint8_t(file[8 + i])) << (8 * i);
  if (bytes > kMaxNpyHeaderBytes || bytes > file.size() - 8 - width) {
    return bad_npy(Code::kCorrupt, name, cat("its header claims ", bytes, " bytes"));
  }
  return Parts{text.substr(8 + width, bytes), file.subspan(8 + width + bytes)};
}

template <class T>
std::vector<T> copy_elements(std::span<const std::byte> data) {
  std::vector<T> out(data.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), data.data(), data.size());
  return out;
}

template <class From, class To>
std::vector<To> convert(std::span<const std::byte> data) {
  const std::vector<From> in = copy_elements<From>(data);
  return std::vector<To>(in.begin(), in.end());
}

}  // namespace

const char* npy_type_name(NpyType type) { return row_of(type).name; }
size_t npy_type_bytes(NpyType type) { return row_of(type).bytes; }

Result<NpyArray> NpyArray::parse(std::span<const std::byte> file, std::string_view name) {
  TOPKNOT_TRY(const Parts parts, split_npy(file, name));
  const auto header = parse_header(parts.header);
  if (!header) {
    return bad_npy(Code::kCorrupt, name, cat("its header says ", printable(parts.header)));
  }
  if (header->fortran_order) return bad_npy(Code::kUnsupported, name, "it is in Fortran order");
  const auto row = std::find_if(kTypes.begin(), kTypes.end(),
                                [&](const TypeRow& t) { return t.descr == header->descr; });
  if (row == kTypes.end()) {
    return bad_npy(Code::kUnsupported, name,
                   cat("elements of type '", printable(header->descr), "' are not read here"));
  }
  uint64_t bytes = row->bytes;
  for (const uint64_t extent : header->shape) {
    if (mul_overflows(bytes, extent, &bytes) || bytes > kMaxNpyBytes) {
      return bad_npy(Code::kOutOfRange, name, cat("it is larger than ", kMaxNpyBytes, " bytes"));
    }
  }
  if (bytes != parts.data.size()) {
    return bad_npy(Code::kCorrupt, name,
                   cat("its shape needs ", bytes, " bytes; it has ", parts.data.size()));
  }
  NpyArray out;
  out.name_ = name;
  out.type_ = row->type;
  out.shape_ = header->shape;
  out.data_.assign(parts.data.begin(), parts.data.end());
  return out;
}

uint64_t NpyArray::elements() const { return data_.size() / npy_type_bytes(type_); }

std::string NpyArray::shape_string() const {
  std::string out = "(";
  for (const uint64_t extent : shape_) out += cat(extent, ", ");
  if (shape_.size() > 1) out.resize(out.size() - 2);
  if (shape_.size() == 1) out.pop_back();  // "(57,)" as NumPy prints it
  return out + ")";
}

Error NpyArray::wrong_type(std::string_view needed) const {
  return {.code = Code::kInvalidArgument,
          .what = cat("the array '", printable(name_), "' has another type"),
          .where = "",
          .why = cat("needed ", needed, ", found ", npy_type_name(type_)),
          .fix = "ask for the type it has"};
}

Result<std::vector<float>> NpyArray::as_floats() const {
  if (type_ != NpyType::kF32) return wrong_type("float32");
  return copy_elements<float>(data_);
}

Result<std::vector<double>> NpyArray::as_doubles() const {
  if (type_ == NpyType::kF64) return copy_elements<double>(data_);
  if (type_ == NpyType::kF32) return convert<float, double>(data_);
  return wrong_type("float32 or float64");
}

Result<std::vector<int32_t>> NpyArray::as_ints() const {
  switch (type_) {
    case NpyType::kI16: return convert<int16_t, int32_t>(data_);
    case NpyType::kI32: return copy_elements<int32_t>(data_);
    case NpyType::kU8:
    case NpyType::kBool: return convert<uint8_t, int32_t>(data_);
    case NpyType::kI64: break;
    case NpyType::kF32:
    case NpyType::kF64: return wrong_type("an integer type");
  }
  std::vector<int32_t> out;
  for (const int64_t value : copy_elements<int64_t>(data_)) {
    if (value != int32_t(value)) {
      return bad_npy(Code::kOutOfRange, name_, cat(value, " does not fit 32 bits"));
    }
    out.push_back(int32_t(value));
  }
  return out;
}

Result<std::vector<uint8_t>> NpyArray::as_bytes() const {
  if (type_ != NpyType::kU8 && type_ != NpyType::kBool) return wrong_type("uint8 or bool");
  return copy_elements<uint8_t>(data_);
}

// --- .npz ----------------------------------------------------------------------------------------

namespace {

struct CloseArchive {
  void operator()(zip_t* archive) const {
    zip_discard(archive);
  }  // read only: nothing to write back
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

Error bad_npz(Code code, const std::string& path, std::string why) {
  return {.code = code,
          .what = "cannot read the .npz file",
          .where = path,
          .why = std::move(why),
          .fix = "restore it from the repository, or make it again (README.md beside it)"};
}

Result<std::unique_ptr<zip_t, CloseArchive>> open_archive(const std::string& path) {
  int code = 0;
  std::unique_ptr<zip_t, CloseArchive> archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  const Code kind = code == ZIP_ER_NOENT                         ? Code::kNotFound
                    : code == ZIP_ER_OPEN || code == ZIP_ER_READ ? Code::kIo
                                                                 : Code::kCorrupt;
  return bad_npz(kind, path, why);
}

// Member `index` of the archive, decompressed. libzip checks the CRC when the last byte is read.
Result<std::vector<std::byte>> read_member(zip_t* archive, uint64_t index, const std::string& path,
                                           std::string* name) {
  zip_stat_t stat;
  zip_stat_init(&stat);
  const bool known = zip_stat_index(archive, index, 0, &stat) == 0 && stat.name != nullptr &&
                     (stat.valid & ZIP_STAT_SIZE) != 0;
  if (!known) return bad_npz(Code::kCorrupt, path, cat("member ", index, " has no name or size"));
  *name = stat.name;
  if (stat.size > kMaxNpyBytes + kMaxNpyHeaderBytes) {
    return bad_npz(Code::kOutOfRange, path,
                   cat("member '", printable(*name), "' claims ", stat.size, " bytes"));
  }
  std::unique_ptr<zip_file_t, CloseMember> member(zip_fopen_index(archive, index, 0));
  if (!member) return bad_npz(Code::kCorrupt, path, zip_strerror(archive));
  // Grown as bytes arrive: the size in the directory is only a claim.
  std::vector<std::byte> out;
  std::vector<std::byte> piece(1 << 16);
  for (;;) {
    const zip_int64_t got = zip_fread(member.get(), piece.data(), piece.size());
    if (got < 0)
      return bad_npz(Code::kCorrupt, path,
                     cat("member '", printable(*name), "': ", zip_file_strerror(member.get())));
    if (got == 0) break;
    out.insert(out.end(), piece.begin(), piece.begin() + got);
    if (out.size() > stat.size) break;
  }
  if (out.size() == stat.size) return out;
  return bad_npz(
      Code::kCorrupt, path,
      cat("member '", printable(*name), "' has not the ", stat.size, " bytes it claims"));
}

}  // namespace

Result<Npz> Npz::open(const std::string& path) {
  TOPKNOT_TRY(const auto archive, open_archive(path));
  const zip_int64_t members = zip_get_num_entries(archive.get(), 0);
  if (members < 0 || uint64_t(members) > kMaxNpzArrays) {
    return bad_npz(Code::kOutOfRange, path, cat("it holds ", members, " members"));
  }
  Npz out;
  out.path_ = path;
  uint64_t total = 0;
  for (uint64_t i = 0; i < uint64_t(members); ++i) {
    std::string name;
    TOPKNOT_TRY(const std::vector<std::byte> bytes, read_member(archive.get(), i, path, &name));
    total += bytes.size();
    if (total > kMaxNpzBytes) {
      return bad_npz(Code::kOutOfRange, path, cat("its arrays exceed ", kMaxNpzBytes, " bytes"));
    }
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    auto array = NpyArray::parse(bytes, name);
    if (!array) {
      array.error().where = path;
      return std::move(array).error();
    }
    if (!out.arrays_.emplace(name, std::move(array).value()).second) {
      return bad_npz(Code::kCorrupt, path, cat("the array '", printable(name), "' is there twice"));
    }
  }
  return out;
}

Result<const NpyArray*> Npz::find(std::string_view name) const {
  if (const auto found = arrays_.find(name); found != arrays_.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [known, array] : arrays_) names.push_back(known);
  std::string near;
  for (const std::string& candidate : nearest(name, names)) near += cat(" '", candidate, "'");
  return Error{.code = Code::kNotFound,
               .what = cat("no array '", printable(name), "'"),
               .where = path_,
               .why = cat("the file holds ", arrays_.size(), " others"),
               .fix = near.empty() ? "" : cat("did you mean", near, "?")};
}

}  // namespace topknot::test
