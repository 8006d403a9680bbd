// Results as a picture: one bar a row, its time on a logarithmic axis, the floor as a mark, the
// baseline as a second bar. SVG with its own colours for light and dark pages; no script, no font.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bench/row.h"

namespace topknot::bench {

std::string plot_svg(std::string_view title, std::span<const Row> rows, const Ceilings& ceilings);

}  // namespace topknot::bench
