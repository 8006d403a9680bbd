#include "attention/libraries.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "attention/library_backend.h"
#include "attention/probe.h"
#include "base/child_process.h"
#include "base/strings.h"
#include "base/try.h"
#include "capability/device_facts.h"
#include "device/machine.h"

namespace topknot::attention {
namespace {

// Messages of the child: what it is about to do, what it proved, and an Error as its five parts.
constexpr std::string_view kStage = "stage ";
constexpr std::string_view kProven = "proven ";
constexpr std::string_view kError = "error ";
constexpr char kBetweenParts = '\0';

constexpr std::string_view kKeys[] = {"name", "before", "after"};

Error bad_option(std::string_view text, std::string why) {
  return Error{.code = Code::kInvalidArgument,
               .what = cat("--backend-library '", printable(text), "' is not understood"),
               .why = std::move(why),
               .fix = "PATH[,name=NAME][,before=NAME|,after=NAME]"};
}

// "after" of "./x.so,after=y"; none where no comma is followed by a word and an equals sign.
std::optional<std::pair<std::string_view, std::string_view>> take_last(std::string_view* text) {
  const size_t comma = text->rfind(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const std::string_view last = text->substr(comma + 1);
  const size_t equals = last.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  *text = text->substr(0, comma);
  return std::pair(last.substr(0, equals), last.substr(equals + 1));
}

Status set_key(std::string_view text, std::string_view key, std::string_view value,
               LibraryOption* option) {
  if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) {
    const std::vector<std::string> keys(std::begin(kKeys), std::end(kKeys));
    const auto near = nearest(key, keys, 1);
    return bad_option(text, cat("'", printable(key), "' is no key of it",
                                near.empty() ? "" : cat("; did you mean '", near[0], "'?")));
  }
  if (value.empty()) return bad_option(text, cat("'", key, "=' has no name behind it"));
  if (key == "name" && !is_backend_name(value)) {
    return bad_option(text, cat("a name has 1 to ", kMaxLibraryNameBytes, " of a-z 0-9 _ - ."));
  }
  std::string* place = key == "name" ? &option->name : &option->placement.neighbour;
  if (!place->empty()) return bad_option(text, "a name and a place are said once at most");
  *place = value;
  if (key == "before") option->placement.where = Placement::Where::kBefore;
  if (key == "after") option->placement.where = Placement::Where::kAfter;
  return {};
}

std::string packed(const Error& error) {
  std::string out(kError);
  out += static_cast<char>('0' + static_cast<int>(error.code));
  for (const std::string* part : {&error.what, &error.where, &error.why, &error.fix}) {
    out += kBetweenParts;
    out += *part;
  }
  return out;
}

Error unpacked(std::string_view message) {
  message.remove_prefix(kError.size());
  Error error{.code = static_cast<Code>(message.front() - '0')};
  message.remove_prefix(1);
  for (std::string* part : {&error.what, &error.where, &error.why, &error.fix}) {
    message.remove_prefix(1);
    *part = message.substr(0, message.find(kBetweenParts));
    message.remove_prefix(part->size());
  }
  return error;
}

Error wrong_numbers(const std::string& path, const ProbeTile& tile, const ProbeResult& result) {
  return Error{.code = Code::kUnsupported,
               .what = "the backend library computes wrong numbers",
               .where = path,
               .why = fmt::format("largest difference from cpu_reference {:.1e}, limit {:.1e}, in "
                                  "a {} tile of {}",
                                  result.largest_difference, result.limit, result.selection,
                                  tile.to_string()),
               .fix = "correct the library: topknot/backend_abi.h says what is computed"};
}

// Where a library is tried: on the host, or on the first GPU there is.
struct Place {
  const ops::Kernels* kernels = nullptr;
  Facts device;
};

std::optional<Place> place_of(const BackendLibrary& library) {
  if (library.on_host()) {
    return Place{ops::available_kernels().front(),
                 Facts().set(capability::Fact::kDevice, capability::DeviceKind::kCpu)};
  }
  for (const device::DeviceFacts& each : device::this_machine().devices) {
    if (each.kind == capability::DeviceKind::kCuda) {
      return Place{nullptr, capability::device_facts(each)};
    }
  }
  return std::nullopt;
}

// A tile of one selection. False when the library's own limits refuse them all.
Result<bool> prove(const BackendLibrary& library, const Backend& backend, const Place& place,
                   Selection selection, const SendToParent& send) {
  const std::string_view name = selection == Selection::kSparse ? "sparse" : "dense";
  send(cat(kStage, "refusals() was asked about ", name, " attention"));
  const auto tile = find_tile(backend, selection, place.device);
  if (!tile) return false;
  send(cat(kStage, "workspace_bytes() was asked"));
  const TopknotShape shape = {sizeof(TopknotShape), tile->shape.heads, tile->shape.kv_lora_rank,
                              tile->shape.qk_rope_head_dim};
  const int64_t bytes = library.table().workspace_bytes(&shape, 1);
  if (bytes < 0 || bytes > kMaxLibraryWorkspaceBytes) {
    return Error{.code = Code::kUnsupported,
                 .what = "the backend library asks for an impossible workspace",
                 .where = library.path(),
                 .why = cat("workspace_bytes() returned ", bytes, "; needed: 0 to ",
                            kMaxLibraryWorkspaceBytes),
                 .fix = "let it return the bytes that create() takes"};
  }
  send(cat(kStage, "a ", name, " tile of ", tile->to_string(), " was computed"));
  ThreadPool pool(2);
  const ProbeResult result =
      probe_tile(backend, *tile, selection, {&pool, place.kernels}, place.device);
  if (!result.problem.empty()) {
    return Error{
        .code = Code::kUnsupported,
        .what = cat("the backend library cannot compute a ", name, " tile of ", tile->to_string()),
        .where = library.path(),
        .why = result.problem,
        .fix = "let its refusals() say so, or leave it out"};
  }
  if (!result.passed()) return wrong_numbers(library.path(), *tile, result);
  return true;
}

// In the child.
Status try_library(const std::string& path, const SendToParent& send) {
  send(cat(kStage, "it was loaded"));
  TOPKNOT_TRY(const auto library, BackendLibrary::open(path));
  const auto place = place_of(*library);
  if (!place) return {};  // no GPU: it stays unproven
  const Backend backend = backend_of(library, {}, {.sparse = true, .dense = true});
  bool any = false;
  for (const Selection selection : {Selection::kSparse, Selection::kDense}) {
    TOPKNOT_TRY(const bool proven, prove(*library, backend, *place, selection, send));
    if (proven) send(cat(kProven, selection == Selection::kSparse ? "sparse" : "dense"));
    any = any || proven;
  }
  if (any) return {};
  std::string why = "its limits refuse every tile of the probe; of the first it says";
  for (const capability::Refusal& each :
       refusals(backend, probe_facts({}, Selection::kSparse, place->device))) {
    why +=
        cat("\n", each.what, ": needs ", each.needed, ", found ", each.found, ": ", each.because);
  }
  return Error{.code = Code::kUnsupported,
               .what = "the backend library cannot be proven",
               .where = path,
               .why = std::move(why),
               .fix = "let it take one of the probe's shapes (docs/backends.md)"};
}

Error bad_end(const std::string& path, const ChildOutcome& outcome,
              std::chrono::milliseconds limit) {
  std::string stage = "it was started";
  for (const std::string& each : outcome.messages) {
    if (each.starts_with(kStage)) stage = each.substr(kStage.size());
  }
  const std::string end = describe_end(outcome, limit);
  const char* how = outcome.end == ChildOutcome::End::kSignal ? "its probe crashed with "
                    : outcome.end == ChildOutcome::End::kTimedOut
                        ? "its probe had "
                        : "its probe ended the program with ";
  return Error{.code = Code::kUnsupported,
               .what = "the backend library cannot be used",
               .where = path,
               .why = cat(how, end, " while ", stage),
               .fix = "leave the library out, or give it to its maker with this message"};
}

Result<Proven> prove_in_child(const std::string& path, std::chrono::milliseconds limit) {
  TOPKNOT_TRY(const ChildOutcome outcome, run_in_child(
                                              [&](const SendToParent& send) {
                                                const Status tried = try_library(path, send);
                                                if (!tried) send(packed(tried.error()));
                                              },
                                              limit));
  if (outcome.end != ChildOutcome::End::kReturned) return bad_end(path, outcome, limit);
  Proven proven;
  for (const std::string& each : outcome.messages) {
    if (each.starts_with(kError)) return unpacked(each);
    if (each == cat(kProven, "sparse")) proven.sparse = true;
    if (each == cat(kProven, "dense")) proven.dense = true;
  }
  return proven;
}

}  // namespace

Result<LibraryOption> parse_library_option(std::string_view text) {
  LibraryOption option;
  std::string_view path = text;
  while (const auto last = take_last(&path)) {
    TOPKNOT_CHECK_OK(set_key(text, last->first, last->second, &option));
  }
  if (path.empty()) return bad_option(text, "it names no file");
  option.path = path;
  return option;
}

Result<BackendEntry> load_library(const LibraryOption& option, std::chrono::milliseconds limit) {
  TOPKNOT_TRY(const Proven proven, prove_in_child(option.path, limit));
  TOPKNOT_TRY(const auto library, BackendLibrary::open(option.path));
  Backend backend = backend_of(library, option.name, proven);
  BackendEntry entry;
  entry.name = backend.name;
  entry.description = backend.description;
  entry.rules = backend.rules;
  entry.backend = std::make_shared<const Backend>(std::move(backend));
  entry.library = option.path;
  return entry;
}

Result<BackendList> backends_with(std::span<const std::string> library_options) {
  if (library_options.size() > kMaxLibraries) {
    return Error{.code = Code::kOutOfRange,
                 .what = cat(library_options.size(), " backend libraries are too many"),
                 .where = "--backend-library",
                 .why = cat("at most ", kMaxLibraries),
                 .fix = "name fewer"};
  }
  BackendList list;
  for (const std::string& text : library_options) {
    TOPKNOT_TRY(const LibraryOption option, parse_library_option(text));
    TOPKNOT_TRY(BackendEntry entry, load_library(option));
    TOPKNOT_CHECK_OK(list.add(std::move(entry), option.placement));
  }
  return list;
}

}  // namespace topknot::attention
