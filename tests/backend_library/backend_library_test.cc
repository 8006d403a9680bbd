// Backend libraries: a right one is a candidate like any other and computes what the program's own
// do; one with a fault is refused with what is wrong, whatever it does to its process.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "attention/libraries.h"
#include "attention/probe.h"
#include "base/strings.h"
#include "topknot/engine.h"

namespace topknot::attention {
namespace {

using namespace capability;
using testing::ElementsAre;
using testing::HasSubstr;

std::string library(const std::string& name) { return cat(TOPKNOT_LIBRARIES, "/", name, ".so"); }

Facts host() { return Facts().set(Fact::kDevice, DeviceKind::kCpu); }

std::vector<std::string> names_of(const BackendList& list) {
  std::vector<std::string> out;
  for (const BackendEntry& each : list.entries()) {
    if (each.backend != nullptr) out.push_back(each.name);
  }
  return out;
}

std::vector<std::string> own_names() { return names_of(BackendList()); }

struct Fault {
  const char* library;
  Code code;
  const char* said;
};

// What is found out in the child, by loading, by asking, or by computing a tile.
constexpr Fault kFaults[] = {
    {"no_symbol", Code::kCorrupt, "it exports no symbol topknot_backend_abi"},
    {"no_table", Code::kUnsupported, "topknot_backend_abi(1) returned no table"},
    {"old_version", Code::kUnsupported, "another ABI version: needs 1, found 0"},
    {"newer_version", Code::kUnsupported, "another ABI version: needs 1, found 2"},
    {"short_table", Code::kCorrupt, "its table is too short: needs 80 bytes, found 72"},
    {"null_entries", Code::kCorrupt, "entries of its table are null: description, run"},
    {"bad_name", Code::kCorrupt, "its name 'Two Words\\x1b[31m' is none"},
    {"bad_memory", Code::kCorrupt, "memory 7"},
    {"fault_when_loaded", Code::kUnsupported,
     "its probe crashed with signal 11 (Segmentation fault) while it was loaded"},
    {"fault_in_entry", Code::kUnsupported,
     "its probe crashed with signal 11 (Segmentation fault) while it was loaded"},
    {"fault_in_refusals", Code::kUnsupported,
     "signal 11 (Segmentation fault) while refusals() was asked about sparse attention"},
    {"fault_in_run", Code::kUnsupported,
     "its probe crashed with signal 11 (Segmentation fault) while a sparse tile of 4 heads, rows "
     "of "
     "512 + 64 in bf16 was computed"},
    {"abort_in_run", Code::kUnsupported,
     "its probe crashed with signal 6 (Aborted) while a sparse"},
    {"throw_in_run", Code::kUnsupported, "it threw an exception: not today"},
    {"throw_in_refusals", Code::kUnsupported, "it threw an exception: no answer today"},
    {"exit_in_run", Code::kUnsupported,
     "its probe ended the program with exit code 0 while a sparse tile"},
    {"wrong_scale", Code::kUnsupported, "largest difference from cpu_reference"},
    {"wrong_lse", Code::kUnsupported, "limit 3.0e-04, in a sparse tile of 4 heads"},
    {"forgets_a_row", Code::kUnsupported, "largest difference from cpu_reference"},
    {"needs_lse", Code::kUnsupported, "signal 11 (Segmentation fault)"},
    {"fails_in_create", Code::kUnsupported, "backend 'faulty' failed in create(): no scratch"},
    {"fails_in_plan", Code::kUnsupported, "failed in plan()"},
    {"odd_workspace", Code::kUnsupported, "workspace_bytes() returned -5"},
    {"refuses_all", Code::kUnsupported, "heads: needs exactly 17, found 4: a tile has so many"},
};

class FaultyLibrary : public testing::TestWithParam<Fault> {};

TEST_P(FaultyLibrary, IsRefusedWithWhatIsWrong) {
  const Fault& fault = GetParam();
  const auto loaded = load_library({.path = library(fault.library)});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, fault.code);
  const std::string text = loaded.error().to_string();
  EXPECT_THAT(text, HasSubstr(fault.said));
  EXPECT_THAT(text, HasSubstr(library(fault.library)));
  EXPECT_FALSE(loaded.error().fix.empty());
}

INSTANTIATE_TEST_SUITE_P(Faults, FaultyLibrary, testing::ValuesIn(kFaults),
                         [](const auto& each) { return std::string(each.param.library); });

TEST(BackendLibrary, OneThatHangsIsGivenUp) {
  const auto loaded = load_library({.path = library("hang_in_run")}, std::chrono::seconds(2));
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().why,
              HasSubstr("its probe had no end within 2 s while a sparse tile of 4 heads"));
}

TEST(BackendLibrary, WhatIsNoLibraryIsSaid) {
  const auto none = load_library({.path = library("none")});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kNotFound);
  EXPECT_THAT(none.error().why, HasSubstr("No such file"));
  const std::string text = testing::TempDir() + "/no_library.so";
  std::ofstream(text) << "int main() {}\n";
  for (const std::string& path : {text, std::string("/dev/zero"), testing::TempDir()}) {
    const auto other = load_library({.path = path});
    ASSERT_FALSE(other) << path;
    EXPECT_EQ(other.error().code, Code::kCorrupt);
    EXPECT_THAT(other.error().why, HasSubstr("it is not a shared library"));
  }
  const std::string cut = testing::TempDir() + "/cut.so";
  std::ofstream(cut) << "\x7f"
                        "ELF and no more";
  const auto broken = load_library({.path = cut});
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().why, HasSubstr("it cannot be loaded: "));
}

TEST(BackendLibrary, ARightOneIsTriedFirstUnlessItIsPlaced) {
  const std::string good = library("scalar_mla");
  const auto list = [](std::vector<std::string> options) {
    const auto made = backends_with(options);
    EXPECT_TRUE(made) << made.error().to_string();
    return names_of(*made);
  };
  const auto own = own_names();
  std::vector<std::string> first = own;
  first.insert(first.begin(), "scalar_mla");
  EXPECT_EQ(list({good}), first);
  first.insert(first.begin() + 1, "again");
  EXPECT_EQ(list({good, good + ",name=again"}), first) << "in the order given";
  std::vector<std::string> last = own;
  last.push_back("scalar_mla");
  EXPECT_EQ(list({good + ",after=cpu_reference"}), last);
  last.insert(last.end() - 2, "b");
  EXPECT_EQ(list({good + ",after=cpu_reference", good + ",name=b,before=cpu_reference"}), last);
}

TEST(BackendLibrary, NamesAndPlacesAreChecked) {
  const auto error_of = [](const std::string& option) {
    const std::string options[] = {option};
    const auto made = backends_with(options);
    EXPECT_FALSE(made) << option;
    return made ? Error{} : made.error();
  };
  const std::string good = library("scalar_mla");
  const Error taken = error_of(library("taken_name"));
  EXPECT_EQ(taken.code, Code::kInvalidArgument);
  EXPECT_THAT(taken.to_string(), HasSubstr("the name 'cpu_simd' is taken"));
  EXPECT_THAT(taken.fix, HasSubstr(",name=mine"));
  const Error place = error_of(good + ",before=cpu_smid");
  EXPECT_EQ(place.code, Code::kNotFound);
  EXPECT_THAT(place.fix, HasSubstr("did you mean 'cpu_simd'?"));
  EXPECT_THAT(error_of(good + ",bfore=cpu_simd").why, HasSubstr("did you mean 'before'?"));
  EXPECT_THAT(error_of(good + ",name=").why, HasSubstr("has no name behind it"));
  EXPECT_THAT(error_of(good + ",name=Mine").why, HasSubstr("a-z 0-9"));
  EXPECT_THAT(error_of(good + ",after=a,before=b").why, HasSubstr("once at most"));
  EXPECT_THAT(error_of(",name=x").why, HasSubstr("names no file"));
  EXPECT_EQ(parse_library_option("./a,b.so,name=x").value().path, "./a,b.so");
}

TEST(BackendLibrary, ItsLimitsAreRefusalsLikeAnyOther) {
  const std::string options[] = {library("scalar_mla")};
  const BackendList list = backends_with(options).value();
  const Facts packed = probe_facts({.format = KvFormat::kFp8Ds}, Selection::kSparse, host());
  const Choice choice = list.select(packed, "scalar_mla");
  EXPECT_FALSE(choice.chosen);
  const std::string text = explain(choice);
  EXPECT_THAT(text, HasSubstr("scalar_mla      kv_format: needs one of f32, bf16, q8_0, found "
                              "fp8_ds: rows of no other format are widened; try "
                              "--kv-cache-dtype bf16"));
  Facts gpu = probe_facts({}, Selection::kSparse, host());
  gpu.set(Fact::kDevice, DeviceKind::kCuda);
  EXPECT_THAT(explain(list.select(gpu)),
              HasSubstr("scalar_mla      device: needs exactly cpu, found cuda: the library "
                        "computes on the host; try --device cpu"));
  EXPECT_TRUE(list.select(probe_facts({}, Selection::kDense, host()), "scalar_mla").chosen);
}

TEST(BackendLibrary, WhatWasNotProvenIsRefused) {
  const std::string options[] = {library("sparse_only"), library("on_a_gpu") + ",name=gpu",
                                 library("many_heads") + ",name=many"};
  const auto list = backends_with(options);
  ASSERT_TRUE(list) << list.error().to_string();
  EXPECT_TRUE(list->select(probe_facts({}, Selection::kSparse, host()), "faulty").chosen);
  const Choice dense = list->select(probe_facts({}, Selection::kDense, host()), "faulty");
  EXPECT_FALSE(dense.chosen);
  EXPECT_THAT(explain(dense), HasSubstr("selection: needs exactly sparse, found dense"));
  EXPECT_THAT(explain(dense), HasSubstr("probe: needs a dense tile that it computes right"));
  const ProbeTile large = {.shape = {64, 512, 64}};
  EXPECT_TRUE(list->select(probe_facts(large, Selection::kDense, host()), "many").chosen)
      << "proven with the first tile that it takes";
  Facts gpu = probe_facts({}, Selection::kSparse, host());
  gpu.set(Fact::kDevice, DeviceKind::kCuda);
  EXPECT_THAT(explain(list->select(gpu, "gpu")), HasSubstr("probe: needs a sparse tile"));
}

TEST(BackendLibrary, OfADeviceOnlyWhatItSaysAboutTheDeviceCounts) {
  const std::string options[] = {library("scalar_mla")};
  const BackendList list = backends_with(options).value();
  const auto on = [&](DeviceKind kind) {
    return standings(list.list_entries(), Facts().set(Fact::kDevice, kind));
  };
  for (const Standing& each : on(DeviceKind::kCpu)) {
    if (each.name == "scalar_mla") {
      EXPECT_EQ(each.fate, Standing::Fate::kCanWin) << "its rows are not known yet";
    }
    if (each.name == "cpu_simd") {
      EXPECT_EQ(each.fate, Standing::Fate::kCanWin) << "what code takes, nobody can tell";
    }
  }
  EXPECT_EQ(on(DeviceKind::kCuda)[0].fate, Standing::Fate::kRefused);
}

TEST(BackendLibrary, ARightOnePassesTheProbeBesideTheOthers) {
  const std::string options[] = {library("scalar_mla"), library("sparse_only")};
  const BackendList list = backends_with(options).value();
  ThreadPool pool(2);
  std::vector<std::string> probed;
  for (const ProbeResult& each : probe_all(list, &pool)) {
    if (each.kernels != "library") continue;
    probed.push_back(cat(each.backend, " ", each.selection));
    EXPECT_TRUE(each.passed()) << each.backend << ": " << each.largest_difference;
  }
  EXPECT_THAT(probed, ElementsAre("scalar_mla sparse", "scalar_mla dense", "faulty sparse"));
}

// The whole model.
constexpr const char* kTiny = TOPKNOT_SOURCE_DIR "/models/tiny-glm-dsa.gguf";

Result<Engine> open(const std::string& option, const std::string& backend, bool dense) {
  EngineOptions options{.model = kTiny,
                        .threads = 2,
                        .context = 512,
                        .kv_cache_dtype = "f32",
                        .attention_backend = backend,
                        .dense = dense,
                        .quiet = true};
  if (!option.empty()) options.backend_libraries = {option};
  return Engine::open(options);
}

TEST(BackendLibraryEngine, TheTinyModelAnswersTheSameSparseAndDense) {
  for (const bool dense : {false, true}) {
    auto with = open(library("scalar_mla"), "", dense);
    auto without = open("", "cpu_reference", dense);
    ASSERT_TRUE(with) << with.error().to_string();
    ASSERT_TRUE(without);
    EXPECT_EQ(with->info().attention_backend, "scalar_mla");
    EXPECT_EQ(with->info().sparse, !dense);
    // Longer than top-k, so that selected rows are read.
    const std::vector<int32_t> tokens(320, 101);
    const auto got = with->score(tokens);
    const auto want = without->score(tokens);
    ASSERT_TRUE(got && want);
    for (size_t i = 0; i < want->size(); ++i) {
      // Both sum in double: the values differ by roundings of their one conversion to float.
      EXPECT_NEAR((*got)[i], (*want)[i], 1e-4) << i;
    }
    const auto prompt = with->chat_prompt({{.role = "user", .content = "Who wrote Emma?"}}, {});
    ASSERT_TRUE(prompt);
    GenerateRequest request{.prompt = *prompt, .sampling = {.temperature = 0}, .max_tokens = 40};
    EXPECT_EQ(with->generate(request).value().tokens, without->generate(request).value().tokens);
  }
}

TEST(BackendLibraryEngine, AnErrorWhileItRunsIsAnErrorOfTheCall) {
  auto engine = open(library("later_fault"), "", false);
  ASSERT_TRUE(engine) << engine.error().to_string();
  EXPECT_EQ(engine->info().attention_backend, "faulty");
  const std::vector<int32_t> tokens(9, 101);
  const auto scores = engine->score(tokens);
  ASSERT_FALSE(scores);
  EXPECT_THAT(scores.error().to_string(), HasSubstr("backend 'faulty' failed in plan()"));
  EXPECT_THAT(scores.error().why, HasSubstr("it threw an exception: std::bad_alloc"));
  EXPECT_TRUE(engine->score(std::span(tokens).first(3))) << "the engine lives on";
}

TEST(BackendLibraryEngine, ANamedOneThatRefusesIsAnErrorNotAnother) {
  const auto engine = open(library("sparse_only"), "faulty", true);
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().to_string(), HasSubstr("selection: needs exactly sparse"));
  const auto other = open(library("sparse_only"), "", true);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->info().attention_backend, "cpu_simd") << "the next candidate, as for any list";
}

}  // namespace
}  // namespace topknot::attention
