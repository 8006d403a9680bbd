#include "bench/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace topknot::bench {
namespace {

constexpr double kWidth = 960;
constexpr double kLabels = 390;  // left of the axis
constexpr double kRight = 70;    // for the number behind the longest bar
constexpr double kRowHeight = 30;
constexpr double kTop = 64;
constexpr double kBarHeight = 10;

constexpr std::string_view kStyle =
    "text{font:12px system-ui,sans-serif;fill:#222}.t{font-size:15px;font-weight:600}"
    ".n{text-anchor:end}.o{fill:#1b6ca8}.b{fill:#c9c9c9}.f{stroke:#b3261e;stroke-width:2}"
    ".g{stroke:#ddd}.p{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.o{fill:#6db3e8}.b{fill:#555}"
    ".f{stroke:#ff8a80}.g{stroke:#333}.p{fill:#161616}}";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      default: out += c;
    }
  }
  return out;
}

// Whole decades around everything that is drawn.
class Axis {
 public:
  Axis(std::span<const Row> rows, const Ceilings& ceilings) {
    double low = 1, high = 10;
    for (const Row& row : rows) {
      for (const double us : {row.us, row.floor_us(ceilings), row.baseline_us.value_or(row.us)}) {
        if (us <= 0) continue;
        low = std::min(low, us);
        high = std::max(high, us);
      }
    }
    first_ = static_cast<int>(std::floor(std::log10(low)));
    last_ = static_cast<int>(std::ceil(std::log10(high)));
  }
  double x(double us) const {
    const double from_left = (std::log10(us) - first_) / (last_ - first_);
    return kLabels + std::clamp(from_left, 0.0, 1.0) * (kWidth - kLabels - kRight);
  }
  std::string grid(double bottom) const {
    std::string out;
    for (int decade = first_; decade <= last_; ++decade) {
      const double at = x(std::pow(10, decade));
      out += fmt::format(
          "<line class=\"g\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>"
          "<text x=\"{0:.1f}\" y=\"{3:.1f}\">{4:g} µs</text>\n",
          at, kTop - 6, bottom, kTop - 10, std::pow(10, decade));
    }
    return out;
  }

 private:
  int first_ = 0;
  int last_ = 1;
};

std::string bar(std::string_view kind, const Axis& axis, double us, double y) {
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>"
      "<text x=\"{:.1f}\" y=\"{:.1f}\">{:.1f}</text>\n",
      kind, kLabels, y, axis.x(us) - kLabels, kBarHeight, axis.x(us) + 4, y + kBarHeight, us);
}

std::string draw(const Row& row, const Ceilings& ceilings, const Axis& axis, double y) {
  std::string out = fmt::format("<text class=\"n\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                                kLabels - 8, y + kBarHeight + 4, escaped(shape_text(row)));
  out += bar("o", axis, row.us, y);
  if (row.baseline_us) out += bar("b", axis, *row.baseline_us, y + kBarHeight + 2);
  if (const double floor = row.floor_us(ceilings); floor > 0) {
    out += fmt::format(
        "<line class=\"f\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n",
        axis.x(floor), y - 2, y + kBarHeight + 2);
  }
  return out;
}

}  // namespace

std::string plot_svg(std::string_view title, std::span<const Row> rows, const Ceilings& ceilings) {
  const Axis axis(rows, ceilings);
  const double bottom = kTop + kRowHeight * static_cast<double>(rows.size());
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n<title>{2}</title><style>{3}</style>\n"
      "<rect class=\"p\" width=\"{0}\" height=\"{1}\"/>"
      "<text class=\"t\" x=\"16\" y=\"24\">{2}</text>"
      "<text x=\"16\" y=\"42\">{4}; blue: this build, grey: baseline, red line: floor</text>\n",
      kWidth, bottom + 16, escaped(title), kStyle, escaped(ceilings.device));
  out += axis.grid(bottom);
  double y = kTop + 2;
  for (const Row& row : rows) {
    out += draw(row, ceilings, axis, y);
    y += kRowHeight;
  }
  return out + "</svg>\n";
}

}  // namespace topknot::bench
