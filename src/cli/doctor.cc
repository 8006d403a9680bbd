// topknot doctor: what this machine is, how fast, and whether anything is broken; a report to send.
#include <algorithm>
#include <memory>
#include <optional>

#include "base/new_file.h"
#include "base/strings.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "doctor/examine.h"
#include "doctor/judge.h"
#include "doctor/report.h"

namespace topknot::cli {
namespace {

constexpr size_t kIndent = 25;  // of the text: behind the verdict and the name

struct DoctorOptions {
  std::string file;
  std::string report;
  bool force = false;
  bool quick = false;
  bool json = false;
};

// What came with line breaks, as an error does, on one line; and safe to print.
std::string one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const char next = c == '\n' ? ' ' : c;
    if (next != ' ' || (!out.empty() && out.back() != ' ')) out += next;
  }
  return printable(out, 4096);
}

std::string to_text(const std::vector<doctor::Check>& checks) {
  std::string out;
  for (const doctor::Check& each : checks) {
    std::string row = fmt::format("{:<8} {:<15} ", doctor::verdict_name(each.verdict), each.name);
    row += wrapped(one_line(each.text), row.size(), kIndent);
    out += row + '\n';
    if (each.remedy.empty()) continue;
    out += std::string(kIndent, ' ') +
           wrapped(cat("-> ", one_line(each.remedy)), kIndent, kIndent + 3) + '\n';
  }
  const auto count = [&](doctor::Verdict verdict) {
    return std::count_if(checks.begin(), checks.end(),
                         [&](const doctor::Check& each) { return each.verdict == verdict; });
  };
  const auto problems = count(doctor::Verdict::kProblem);
  const auto notes = count(doctor::Verdict::kNote);
  out += cat("\n", problems == 0 ? std::string("nothing is broken") : cat(problems, " broken"),
             ", ", notes, notes == 1 ? " note\n" : " notes\n");
  return out;
}

Result<int> examine(const DoctorOptions& o) {
  std::optional<NewFile> report;
  if (!o.report.empty()) {
    TOPKNOT_TRY(report, NewFile::create(o.report, o.force ? Overwrite::kYes : Overwrite::kNo));
  }
  Interrupt::install();
  doctor::ExamineOptions options;
  options.quick = o.quick;
  options.file = o.file;
  options.cancel = &Interrupt::flag();
  options.announce = [](std::string_view what) { write_message(cat("doctor: ", what, " ...\n")); };
  TOPKNOT_TRY(const doctor::Findings found, doctor::examine(options));
  const std::vector<doctor::Check> checks = doctor::judge(found);
  const Json json = doctor::report_json(found, checks);
  if (report) {
    TOPKNOT_CHECK_OK(
        report->commit(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
  }
  if (o.json) {
    write_json(json);
  } else {
    write_output(to_text(checks));
  }
  if (report) write_message(cat("report: ", printable(o.report, 4096), "\n"));
  return doctor::anything_broken(checks) ? kExitFailed : 0;
}

}  // namespace

void add_doctor(CLI::App* program, Action* action) {
  CLI::App* app = program->add_subcommand(
      "doctor", "Examine this machine: what it is, how fast, and what is broken");
  const auto o = std::make_shared<DoctorOptions>();
  app->add_option("-m,--model", o->file, "a large file: how fast its disk is read");
  app->add_option("--report", o->report,
                  "write everything to this JSON file, to send or for `plan --devices`");
  app->add_flag("--force", o->force, "write the report over a file that is there");
  app->add_flag("--quick", o->quick, "shorter measurements: seconds in all, and less exact");
  add_json_option(app, &o->json);
  app->footer("Exit code 0 when nothing is broken, 1 when something is (docs/doctor.md).\n" +
              examples({"topknot doctor", "topknot doctor --quick",
                        "topknot doctor -m model.gguf --report machine.json",
                        "topknot doctor --quick --json"}));
  app->callback([o, action] {
    *action = [o] {
      const auto code = examine(*o);
      return code ? *code : report(code.error());
    };
  });
}

}  // namespace topknot::cli
